//! The steps of a raw block volume.

use quarry::types::Bytes;

use crate::calls::{Mode, Volume};
use crate::error::{Error, ensure};
use crate::table::Cells;
use crate::walk::{RAW, RAW_AGAIN, Walk};

const STAGING: &str = "/mnt/staging-disk";
const DISK: &str = "/mnt/disk";
const SIZE: Bytes = Bytes::mib(32);

pub(crate) async fn create(walk: &mut Walk) -> Result<Volume, Error> {
    walk.screen.step("A raw block volume: the pod gets the device itself");
    let volume = published(walk, RAW).await?;
    let size = walk.look(&format!("blockdev --getsize64 {DISK}"), "", Cells::None)?;
    ensure(size == [SIZE.get().to_string()], || format!("the device should have {SIZE}: {size:?}"))?;
    walk.does(&format!("yes 'the first tenant was here' | head -c {} > {DISK}", SIZE.get()))?;
    walk.look(&format!("head -n 1 {DISK}"), "", Cells::None)?;
    Ok(volume)
}

/// The volume is removed, and another made where it was.
pub(crate) async fn again(walk: &mut Walk, first: &Volume) -> Result<Volume, Error> {
    walk.screen.step("It goes, and the next tenant gets the same place");
    let before = place(walk, RAW)?;
    walk.remove(first).await?;
    let volume = published(walk, RAW_AGAIN).await?;
    let now = place(walk, RAW_AGAIN)?;
    ensure(now == before, || format!("it should lie where the first lay, {before}, and lies at {now}"))?;
    walk.does(&format!("cmp -n {} {DISK} /dev/zero", SIZE.get()))?;
    walk.screen.proved("every byte is zero: nobody reads what the last tenant left");
    Ok(volume)
}

async fn published(walk: &mut Walk, name: &str) -> Result<Volume, Error> {
    let volume = walk.make(name, SIZE, Mode::Block, STAGING, DISK).await?;
    walk.calls.stage(&volume).await?;
    walk.calls.publish(&volume).await?;
    Ok(volume)
}

/// Where on the disk a volume lies.
fn place(walk: &Walk, name: &str) -> Result<String, Error> {
    let short = walk.screen.shortened(name);
    let lines = walk.show_volumes("lv_name,lv_size,seg_pe_ranges")?;
    let line = lines.iter().find(|line| line.starts_with(&short));
    let place = line.and_then(|line| line.split_whitespace().last()).map(str::to_owned);
    place.ok_or_else(|| Error::Wrong(format!("LVM does not list {name}")))
}

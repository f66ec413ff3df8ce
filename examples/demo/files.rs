//! The steps of a volume with a file system.

use std::fs;

use quarry::types::Bytes;

use crate::calls::{Mode, Volume};
use crate::error::{Error, ensure};
use crate::table::Cells;
use crate::walk::{FILES, Walk};

const STAGING: &str = "/mnt/staging";
const POD: &str = "/mnt/pod";
const DATA: &str = "/mnt/pod/data";

const SIZE: Bytes = Bytes::mib(300);
const EXPANDED: Bytes = Bytes::mib(600);

pub(crate) async fn create(walk: &mut Walk) -> Result<Volume, Error> {
    walk.screen.step(&format!("Create a volume of {SIZE}"));
    walk.screen.note("The answer does not wait for mkfs: the driver prepares the volume behind it.");
    let volume = walk.make(FILES, SIZE, Mode::Ext4, STAGING, POD).await?;
    walk.show_volumes("lv_name,lv_size,lv_tags")?;
    walk.screen.note("All that the driver knows of a volume is in its tags. q.s is its state: b for blank,");
    walk.screen.note("f for fresh, once the file system is made.");
    Ok(volume)
}

pub(crate) async fn publish(walk: &mut Walk, volume: &Volume) -> Result<(), Error> {
    walk.screen.step("A pod gets it: stage, which mounts it, and publish, which shows it to the pod");
    fs::create_dir_all(STAGING).map_err(Error::io(format!("make {STAGING}")))?;
    walk.calls.stage(volume).await?;
    walk.calls.publish(volume).await?;
    walk.look(&format!("findmnt -o TARGET,FSTYPE,SOURCE {POD}"), "--raw", Cells::Blanks)?;
    let lines = walk.show_volumes("lv_name,lv_size,lv_tags")?;
    ensure(lines.iter().any(|line| line.contains("q.s=u")), || "its state should be `used`".to_owned())?;
    walk.screen.note("u is for used: from now on it may hold somebody's data, and is never formatted again.");
    Ok(())
}

/// The checksum of what was written.
pub(crate) async fn write(walk: &mut Walk, volume: &Volume) -> Result<String, Error> {
    walk.screen.step("The pod writes a file");
    walk.does(&format!("dd if=/dev/urandom of={DATA} bs=1M count=64 conv=fsync status=none"))?;
    let sum = checksum(walk)?;
    let used = walk.calls.used(volume).await?;
    ensure(used >= Bytes::mib(64), || format!("64 MiB were written, and only {used} are used"))?;
    Ok(sum)
}

pub(crate) async fn expand(walk: &mut Walk, volume: &Volume) -> Result<(), Error> {
    walk.screen.step(&format!("Expand it to {EXPANDED}, mounted as it is"));
    show_room(walk)?;
    walk.calls.expand(volume, EXPANDED).await?;
    let room = show_room(walk)?;
    ensure(room > Bytes::mib(550).get(), || "the file system should have grown".to_owned())?;
    walk.show_volumes("lv_name,lv_size").map(drop)
}

pub(crate) async fn compare(walk: &mut Walk, volume: &Volume, sum: &str) -> Result<(), Error> {
    walk.screen.step("The file again, read from the disk");
    walk.does("echo 3 > /proc/sys/vm/drop_caches")?;
    let now = checksum(walk)?;
    ensure(now == sum, || format!("the file's checksum is {now} now, and was {sum}"))?;
    walk.screen.proved("the checksum is the same");
    walk.calls.used(volume).await.map(drop)
}

fn checksum(walk: &Walk) -> Result<String, Error> {
    let lines = walk.look(&format!("sha256sum {DATA}"), "", Cells::None)?;
    lines.into_iter().next().ok_or_else(|| Error::Wrong("sha256sum printed nothing".to_owned()))
}

/// The size of the file system, in bytes.
fn show_room(walk: &Walk) -> Result<u64, Error> {
    walk.look(&format!("df -h {POD}"), "--output=size,used,avail", Cells::Blanks)?;
    let stat = nix::sys::statvfs::statvfs(POD);
    let stat = stat.map_err(|errno| Error::io(format!("look at {POD}"))(errno.into()))?;
    Ok(stat.blocks() * stat.fragment_size())
}

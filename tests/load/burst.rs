//! More creates at once than there is room for: as many volumes as fit, a plain refusal for all others, and
//! nothing half-made.

use std::collections::BTreeSet;

use quarry::proto::csi::v1 as csi;
use tonic::{Code, Status};

use super::slot::Slot;
use crate::crash::bench;
use crate::driver::{self, Client, Driver, MIB, Mode, VG, command, make_group, until};

/// The size of each.
const SIZE: u64 = 16 * MIB;

/// How many are asked for, and how many there is room for.
const ASKED: usize = 50;
const ROOM: usize = 30;

/// What is left beside: less than one more would need.
const REST: u64 = 4 * MIB;

#[test]
fn as_many_volumes_are_made_as_there_is_room_for_and_the_rest_is_refused() {
    let machine = lab::Machine::new().disk("640M");
    machine.boot(|| driver::run(burst()));
}

#[test]
fn as_many_volumes_are_made_as_there_is_room_for_beside_udev() {
    let machine = lab::Machine::new().disk("640M").udev();
    machine.boot(|| driver::run(burst()));
}

async fn burst() {
    make_group(VG, &lab::disks());
    let filler = bench::free() - ROOM as u64 * SIZE - REST;
    command("lvcreate", &["-q", "-y", "-n", "filler", "-L", &format!("{filler}b"), VG]);
    let driver = Driver::start().await;
    let client = driver.client().await;
    let made = ask_for_all(&client).await;
    assert_eq!(made.len(), ROOM);
    // Asked once more, each is what it is: made once, or refused.
    assert_eq!(ask_for_all(&client).await, made);
    are_whole(&client, &made).await;
    one_goes_and_one_comes(&client, made).await;
}

/// Asks for all at the same time, and gives those that were made. The others are refused, and whoever is
/// refused is told at that instant that nothing of the size can be made.
async fn ask_for_all(client: &Client) -> BTreeSet<usize> {
    let calls: Vec<_> = (0..ASKED)
        .map(|number| {
            let mut client = client.clone();
            tokio::spawn(async move {
                let answer = create(&mut client, Slot(number)).await;
                (number, answer, client.capacity().await.unwrap())
            })
        })
        .collect();
    let mut made = BTreeSet::new();
    for call in calls {
        let (number, answer, (_, largest)) = call.await.unwrap();
        match answer {
            Ok(volume) => {
                assert_eq!(u64::try_from(volume.capacity_bytes), Ok(SIZE));
                made.insert(number);
            }
            Err(refusal) => {
                assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
                assert!(largest < SIZE, "refused, and {largest} are said to be possible");
            }
        }
    }
    made
}

async fn create(client: &mut Client, slot: Slot) -> Result<csi::Volume, Status> {
    let mode = if slot.0.is_multiple_of(2) { Mode::Ext4 } else { Mode::Block };
    client.create(&slot.name(), SIZE, mode).await
}

/// Holds that exactly these are there, and that each ends up prepared.
async fn are_whole(client: &Client, made: &BTreeSet<usize>) {
    until("all are prepared", async || bench::lvs().values().all(|lv| lv.state != "b")).await;
    assert_eq!(client.clone().capacity().await.unwrap(), (REST, REST));
    assert_eq!(bench::free(), REST);
    let names: Vec<String> = made.iter().map(|number| Slot(*number).name()).collect();
    let filler = bench::lvs()["filler"].size;
    let volumes = names.iter().map(|name| (name.as_str(), SIZE, "f"));
    bench::holds_exactly(volumes.chain([("filler", filler, "")]));
}

/// Holds that the place of one that is deleted goes to one that was refused.
async fn one_goes_and_one_comes(client: &Client, mut made: BTreeSet<usize>) {
    let mut client = client.clone();
    let gone = made.pop_first().unwrap();
    let id = create(&mut client, Slot(gone)).await.unwrap().volume_id;
    client.delete(&id).await.unwrap();
    let late = (0..ASKED).find(|number| *number != gone && !made.contains(number)).unwrap();
    create(&mut client, Slot(late)).await.unwrap();
    made.insert(late);
    are_whole(&client, &made).await;
}

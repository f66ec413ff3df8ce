//! A caller: it chooses a volume and what to do with it, and tells the ledger before and after.

use std::time::Duration;

use lab::Dice;
use quarry::proto::csi::v1 as csi;
use tonic::Status;

use super::call::{Call, Outcome};
use super::facts::{Fact, Facts};
use super::ledger::Ledger;
use super::slot::{EXTENT, Slot};
use super::user;
use crate::driver::{Client, Mode, Volume};

/// How long a user's access may take. It waits while the volume is suspended, until a driver resumes it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Chooses what to do with a volume of which that is known.
pub(super) fn choose(slot: Slot, facts: &Facts, dice: &mut Dice) -> Call {
    let sizes = slot.extents();
    let create = Call::Create { size: dice.number(sizes.clone()) * EXTENT };
    let size = (facts.least + dice.number(0..3) * EXTENT).clamp(EXTENT, 2 * sizes.end * EXTENT);
    let (expand, node_expand) = (Call::Expand { size }, Call::NodeExpand { size });
    if dice.one_in(16) {
        // Perhaps it makes no sense now, and is to be refused.
        let any =
            [Call::Stage, Call::Publish, Call::Stats, Call::Validate, expand, node_expand, Call::Delete];
        return dice.pick(&any);
    }
    match facts {
        Facts { exists: Fact::No, .. } => create,
        Facts { exists: Fact::Either, .. } => dice.pick(&[create, create, Call::Delete]),
        Facts { published: Fact::Yes, .. } => {
            let write = write(slot, facts, dice);
            dice.pick(&[
                write,
                write,
                Call::Read,
                Call::Stats,
                expand,
                node_expand,
                node_expand,
                Call::Unpublish,
            ])
        }
        Facts { published: Fact::Either, .. } => dice.pick(&[Call::Publish, Call::Unpublish]),
        Facts { staged: Fact::No, .. } => {
            dice.pick(&[Call::Stage, Call::Stage, Call::Stage, expand, create, Call::Validate, Call::Delete])
        }
        Facts { staged: Fact::Yes | Fact::Either, .. } => {
            dice.pick(&[Call::Publish, Call::Publish, Call::Stage, expand, Call::Unstage])
        }
    }
}

/// Something new that a user writes to one of its places.
pub(super) fn write(slot: Slot, facts: &Facts, dice: &mut Dice) -> Call {
    let place = dice.number(0..user::places(slot.mode(), facts.least));
    Call::Write { place, stamp: dice.number(1..u64::MAX) }
}

/// Makes a call about a volume whose turn the caller has, and tells the ledger. Whoever is given a volume
/// reads it first.
pub(super) async fn make(ledger: &Ledger, slot: Slot, volume: &Volume, call: Call, twice: bool) -> Outcome {
    ledger.asks(slot, call);
    let one = async || Outcome::from(answer(ledger, slot, volume, call).await);
    let outcome = match call {
        Call::Write { .. } | Call::Read => access(ledger, slot, volume, call).await,
        _ if twice => {
            let (first, second) = tokio::join!(one(), one());
            first.or(second)
        }
        _ => one().await,
    };
    ledger.came(slot, call, outcome.clone());
    if call == Call::Publish && matches!(outcome, Outcome::Done { .. }) {
        ledger.asks(slot, Call::Read);
        ledger.came(slot, Call::Read, access(ledger, slot, volume, Call::Read).await);
    }
    outcome
}

/// The answer, with the size that is in it.
async fn answer(ledger: &Ledger, slot: Slot, volume: &Volume, call: Call) -> Result<Option<u64>, Status> {
    let mut client = volume.client();
    match call {
        Call::Create { size } => {
            let made = client.create(&slot.name(), size, slot.mode()).await?;
            assert_eq!(made.volume_id, volume.id, "{}", ledger.tale(slot));
            Ok(Some(made.capacity_bytes.try_into().unwrap()))
        }
        Call::Stage => volume.stage().await.map(|()| None),
        Call::Publish => volume.publish().await.map(|()| None),
        Call::Write { .. } | Call::Read => unreachable!("the driver is not asked"),
        Call::Stats => Ok(total(&volume.stats().await?).filter(|_| slot.mode() == Mode::Block)),
        Call::Validate => validate(&mut client, volume).await.map(|()| None),
        Call::Expand { size } => volume.expand(size).await.map(Some),
        Call::NodeExpand { size } => client.node_expand(&volume.id, &volume.target, size).await.map(Some),
        Call::Unpublish => volume.unpublish().await.map(|()| None),
        Call::Unstage => volume.unstage().await.map(|()| None),
        Call::Delete => volume.delete().await.map(|()| None),
    }
}

/// Reads or writes at the published path.
async fn access(ledger: &Ledger, slot: Slot, volume: &Volume, call: Call) -> Outcome {
    let (mode, target, facts) = (slot.mode(), volume.target.clone(), ledger.facts(slot));
    let work = tokio::task::spawn_blocking(move || match call {
        Call::Write { place, stamp } => user::write(mode, &target, place, stamp)
            .map_err(|error| format!("it cannot be written to: {error}")),
        _ => user::read(mode, &target, &facts).map(drop),
    });
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => {
            done.unwrap().map_or_else(|what| Outcome::Wrong { what }, |()| Outcome::Done { size: None })
        }
        Err(_) => Outcome::Wrong { what: "it does not answer its user".to_owned() },
    }
}

/// The size that NodeGetVolumeStats tells.
fn total(stats: &csi::NodeGetVolumeStatsResponse) -> Option<u64> {
    let bytes = stats.usage.iter().find(|usage| usage.unit() == csi::volume_usage::Unit::Bytes)?;
    bytes.total.try_into().ok()
}

async fn validate(client: &mut Client, volume: &Volume) -> Result<(), Status> {
    let request = csi::ValidateVolumeCapabilitiesRequest {
        volume_id: volume.id.clone(),
        volume_capabilities: vec![volume.mode.capability()],
        ..Default::default()
    };
    let answer = client.controller.validate_volume_capabilities(request).await?.into_inner();
    assert!(answer.confirmed.is_some(), "{} is not what it was asked for as: {}", volume.id, answer.message);
    Ok(())
}

/// One of the calls that are about no volume.
pub(super) async fn ask(client: &Client, dice: &mut Dice) -> Result<(), Status> {
    let mut client = client.clone();
    match dice.number(0..7) {
        0 => client.identity.get_plugin_info(csi::GetPluginInfoRequest {}).await.map(drop),
        1 => client.identity.get_plugin_capabilities(csi::GetPluginCapabilitiesRequest {}).await.map(drop),
        2 => client
            .controller
            .controller_get_capabilities(csi::ControllerGetCapabilitiesRequest {})
            .await
            .map(drop),
        3 => client.node.node_get_capabilities(csi::NodeGetCapabilitiesRequest {}).await.map(drop),
        4 => client.node.node_get_info(csi::NodeGetInfoRequest {}).await.map(drop),
        5 => client.probe().await.map(drop),
        _ => client.capacity().await.map(|(usable, largest)| assert!(largest <= usable)),
    }
}

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::{Response, Status};

use super::Router;
use super::contest::usable;
use super::create::{Refusal, Wish};
use super::error::RouteError;
use super::fleet::{Linked, Standing};
use super::room::room;
use crate::proto::csi::v1 as proto;
use crate::proto::quarry::v1::FindRequest;
use crate::proto::quarry::v1::stock_client::StockClient;
use crate::types::{Bytes, CsiName, NodeName, chain};
use crate::volume::Capacity;

/// How long a node may take to say whether it has a volume of some name: it answers from memory.
const LOOK: Duration = Duration::from_secs(5);

/// How many nodes are asked to make one volume, one after another, while each says that it has no room.
const TRIES: usize = 3;

impl Router {
    /// Makes a volume on one of several nodes: where there is one of that name already, otherwise where there
    /// is most room.
    pub(super) async fn create_anywhere(
        &self,
        wish: &Wish,
        caller: &MetadataMap,
        message: &proto::CreateVolumeRequest,
    ) -> Result<Response<proto::CreateVolumeResponse>, Status> {
        // The same name again while its place is being chosen would end on another node.
        let _placing = self.names.place(&wish.name).ok_or(RouteError::Busy)?;
        let candidates: Vec<Linked> =
            self.parts.fleet.all_linked().into_iter().filter(|linked| wish.admits(linked)).collect();
        if let Some(node) = self.holder(wish, &candidates).await? {
            return Ok(self.create_at(wish, &node, caller, message).await?);
        }
        let mut refusal: Status = match self.expected(wish) {
            Some(node) => RouteError::Away(node).into(),
            None => self.full(wish, &candidates).into(),
        };
        for linked in self.with_room(wish, &candidates).into_iter().take(TRIES) {
            match self.create_at(wish, linked.session.node(), caller, message).await {
                Err(Refusal::NoRoom(status)) => refusal = status,
                answer => return Ok(answer?),
            }
        }
        Err(refusal)
    }

    /// The node that has, or may have, a volume of that name.
    async fn holder(&self, wish: &Wish, candidates: &[Linked]) -> Result<Option<NodeName>, RouteError> {
        let passed_on = self.names.holder(&wish.name);
        if let Some(node) =
            passed_on.filter(|node| wish.places.is_empty() || wish.named().any(|name| name == node))
        {
            return Ok(Some(node));
        }
        if self.parts.fleet.is_new() {
            // A controller before this one may have had it made.
            let linked = self.parts.fleet.objects();
            let known = self.parts.nodes.known();
            let missing =
                known.nodes.iter().find(|(name, node)| !node.groups.is_empty() && !linked.contains(*name));
            match missing {
                _ if !known.is_listed() => return Err(RouteError::Unlisted),
                Some((name, _)) => return Err(RouteError::New(name.clone())),
                None if candidates.is_empty() => return Err(RouteError::New("none has".to_owned())),
                None => {}
            }
        }
        let looks = candidates.iter().map(|linked| look(linked, &wish.name));
        Ok(join_all(looks).await.into_iter().flatten().next())
    }

    /// A node that is asked for by name and not there, and may be back any moment: it may have room.
    fn expected(&self, wish: &Wish) -> Option<NodeName> {
        let may_come = |node: &&NodeName| match self.parts.fleet.standing(node) {
            Standing::Linked(_) => false,
            Standing::Joining => true,
            Standing::Away(time) => time < self.parts.fleet.pace().away,
        };
        wish.named().find(may_come).cloned()
    }

    /// The nodes with room for it by what they told, those with most of it first.
    fn with_room<'a>(&self, wish: &Wish, candidates: &'a [Linked]) -> Vec<&'a Linked> {
        let size = wish.size.max(Bytes::new(1));
        let with_room = candidates.iter().map(|linked| (self.room_for(wish, linked), linked));
        let mut with_room: Vec<_> = with_room.filter(|(room, _)| room.maximum >= size).collect();
        with_room.sort_by_key(|(room, _)| std::cmp::Reverse(room.available));
        with_room.into_iter().map(|(_, linked)| linked).collect()
    }

    fn room_for(&self, wish: &Wish, linked: &Linked) -> Capacity {
        let usable = usable(&self.parts.fleet, &self.parts.nodes.known(), linked, wish.choice());
        usable.map_or_else(|_| Capacity::default(), |groups| room(groups, &linked.refusals))
    }

    fn full(&self, wish: &Wish, candidates: &[Linked]) -> RouteError {
        let offer =
            |linked: &Linked| format!("{} {}", linked.session.object(), self.room_for(wish, linked).maximum);
        let mut offers: Vec<String> = candidates.iter().take(10).map(offer).collect();
        if candidates.len() > offers.len() {
            offers.push(format!("and {} others", candidates.len() - offers.len()));
        }
        match candidates {
            [] => RouteError::Nobody,
            _ => RouteError::Full { size: wish.size, offers: offers.join(", ") },
        }
    }
}

/// The node, if it has a volume of that name. One that does not say is passed over: whatever it may hold,
/// others can make the volume.
async fn look(linked: &Linked, name: &CsiName) -> Option<NodeName> {
    let session = &linked.session;
    let mut stock = StockClient::new(session.channel());
    let question = stock.find(FindRequest { name: name.as_str().to_owned() });
    match timeout(LOOK, question).await {
        Ok(Ok(answer)) => (!answer.get_ref().volume_ids.is_empty()).then(|| session.node().clone()),
        Ok(Err(status)) => {
            tracing::warn!(node = %session.node(), error = chain(&status), "a node did not say whether it has a volume");
            None
        }
        Err(_) => {
            tracing::warn!(node = %session.node(), "a node did not say in time whether it has a volume");
            None
        }
    }
}

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tonic::{Request, Response, Status};

use super::contest::{uncontested, usable};
use super::create::Wish;
use super::error::RouteError;
use super::fleet::{Owner, Standing};
use super::forward::{handed_back, node, passed_on};
use super::names::Names;
use super::room::{Choice, add, room};
use super::{Fleet, Lost, lost};
use crate::cluster::{Events, Labels, Nodes};
use crate::csi::{convert, router_capabilities, span};
use crate::link::Session;
use crate::proto::csi::v1 as proto;
use crate::types::{ClusterId, NodeName, Segment, VolumeId};
use crate::volume::{Capacity, CapacityRequest};

/// The Controller service of the whole cluster.
#[derive(Clone)]
pub struct Router {
    pub(super) parts: Parts,
    pub(super) names: Names,
}

/// What a [`Router`] goes by.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The nodes with links.
    pub fleet: Arc<Fleet>,
    /// The nodes of the cluster.
    pub nodes: Nodes,
    /// Their labels.
    pub labels: Labels,
    /// The groups that are declared lost.
    pub lost: Arc<Lost>,
    /// Where people are told.
    pub events: Events,
    /// The cluster, once it is known: volumes are marked with it.
    pub identity: watch::Receiver<Option<ClusterId>>,
}

impl Router {
    /// The service over these.
    pub fn new(parts: Parts) -> Self {
        Self { parts, names: Names::default() }
    }

    /// The owner of a volume.
    fn owner(&self, id: &VolumeId) -> Result<Session, RouteError> {
        match self.parts.fleet.owner(&id.vg) {
            Owner::One(session) => Ok(session),
            Owner::Many(nodes) => Err(RouteError::Twice { vg: id.vg.clone(), nodes }),
            Owner::Nobody => Err(RouteError::Unseen { id: id.clone(), vg: id.vg.clone() }),
        }
    }

    /// The owner of a volume that is to be changed. Where another node may have its group too, nobody is: what is
    /// shown may be a copy, and the volume itself be on a node that is away for a moment.
    fn sole_owner(&self, id: &VolumeId) -> Result<Session, RouteError> {
        let owner = self.owner(id)?;
        uncontested(&self.parts.fleet, &self.parts.nodes, owner.object(), &id.vg)?;
        Ok(owner)
    }

    fn capacity(&self, request: &CapacityRequest) -> Result<Capacity, RouteError> {
        let fleet = &self.parts.fleet;
        let mut named = request.segments.iter().filter_map(|segment| match segment {
            Segment::Node(node) => Some(node),
            Segment::Vg(_) => None,
        });
        if let Some(node) = named.next() {
            return match named.any(|other| other != node) {
                // No place is on two nodes.
                true => Ok(Capacity::default()),
                false => self.capacity_of(node, request),
            };
        }
        let all = fleet.all_linked();
        let sum = all.iter().map(|linked| self.room_of(linked, request)).fold(Capacity::default(), add);
        if sum == Capacity::default() && fleet.is_new() {
            return Err(RouteError::New("whether there is room cannot be said".to_owned()));
        }
        Ok(sum)
    }

    fn capacity_of(&self, node: &NodeName, request: &CapacityRequest) -> Result<Capacity, RouteError> {
        match self.parts.fleet.standing(node) {
            Standing::Linked(linked) => Ok(self.room_of(&linked, request)),
            Standing::Away(time) if time >= self.parts.fleet.pace().away => Ok(Capacity::default()),
            Standing::Away(_) | Standing::Joining => Err(RouteError::Away(node.clone())),
        }
    }

    pub(super) fn room_of(&self, linked: &super::fleet::Linked, request: &CapacityRequest) -> Capacity {
        let choice = Choice::of(request.volume_group.as_ref(), &request.segments);
        match usable(&self.parts.fleet, &self.parts.nodes.known(), linked, choice) {
            Ok(groups) => room(groups, &linked.refusals),
            Err(_) => Capacity::default(),
        }
    }
}

#[tonic::async_trait]
impl proto::controller_server::Controller for Router {
    async fn create_volume(
        &self,
        request: Request<proto::CreateVolumeRequest>,
    ) -> Result<Response<proto::CreateVolumeResponse>, Status> {
        span::name(&request.get_ref().name);
        let wish = Wish::of(request.get_ref())?;
        self.create(&wish, request.metadata(), request.get_ref()).await
    }

    async fn delete_volume(
        &self,
        request: Request<proto::DeleteVolumeRequest>,
    ) -> Result<Response<proto::DeleteVolumeResponse>, Status> {
        span::volume(&request.get_ref().volume_id);
        let done = Ok(Response::new(proto::DeleteVolumeResponse {}));
        // An id that is none of ours names nothing, and nothing is what is to be left.
        let Some(id) = convert::volume_id(&request.get_ref().volume_id)? else { return done };
        let is_lost = self.parts.lost.holds(&self.parts.fleet, &id.vg).await;
        if is_lost.map_err(|source| RouteError::Unsaid { id: id.clone(), source })? {
            lost::given_up(&self.parts.events, &id);
            return done;
        }
        let mut owner = node(&self.sole_owner(&id)?);
        let (caller, _, message) = request.into_parts();
        handed_back(owner.delete_volume(passed_on(&caller, message)).await)
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<proto::ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<proto::ValidateVolumeCapabilitiesResponse>, Status> {
        span::volume(&request.get_ref().volume_id);
        convert::question(request.get_ref())?;
        let id = convert::existing(&request.get_ref().volume_id)?;
        let mut owner = node(&self.owner(&id)?);
        let (caller, _, message) = request.into_parts();
        handed_back(owner.validate_volume_capabilities(passed_on(&caller, message)).await)
    }

    async fn get_capacity(
        &self,
        request: Request<proto::GetCapacityRequest>,
    ) -> Result<Response<proto::GetCapacityResponse>, Status> {
        let capacity = match convert::capacity_request(request.get_ref())? {
            Some(request) => self.capacity(&request)?,
            None => Capacity::default(),
        };
        Ok(Response::new(convert::capacity(capacity)))
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<proto::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<proto::ControllerGetCapabilitiesResponse>, Status> {
        let capabilities = router_capabilities();
        Ok(Response::new(proto::ControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<proto::ControllerExpandVolumeRequest>,
    ) -> Result<Response<proto::ControllerExpandVolumeResponse>, Status> {
        span::volume(&request.get_ref().volume_id);
        convert::wanted(request.get_ref().capacity_range.as_ref())?;
        let id = convert::existing(&request.get_ref().volume_id)?;
        let mut owner = node(&self.sole_owner(&id)?);
        let (caller, _, message) = request.into_parts();
        handed_back(owner.controller_expand_volume(passed_on(&caller, message)).await)
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").finish_non_exhaustive()
    }
}

use tonic::metadata::MetadataMap;
use tonic::{Code, Response, Status};

use super::Router;
use super::contest::{in_create, usable};
use super::error::RouteError;
use super::fleet::{Linked, Standing};
use super::forward::{handed_back, node, passed_on_from, plain};
use super::room::Choice;
use crate::csi::{convert, span};
use crate::link::generation;
use crate::proto::csi::v1 as proto;
use crate::types::{Bytes, ClassParameters, CsiName, NodeName, Segment, VgName, VolumeId};

/// What of a CreateVolume the controller goes by.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) name: CsiName,
    pub(super) size: Bytes,
    pub(super) volume_group: Option<VgName>,
    /// Where it may be made, any one of them; empty where anywhere will do.
    pub(super) places: Vec<Vec<Segment>>,
}

type Created = Result<Response<proto::CreateVolumeResponse>, Status>;

impl Wish {
    pub(super) fn of(message: &proto::CreateVolumeRequest) -> Result<Self, Status> {
        let invalid = |field: &str, error| Status::invalid_argument(format!("{field}: {error}"));
        let name = convert::required("name", &message.name)?;
        let given = message.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let volume_group = ClassParameters::volume_group(given);
        let places = convert::places(message.accessibility_requirements.as_ref());
        Ok(Self {
            name: name.parse().map_err(|error| invalid("name", error))?,
            size: convert::range(message.capacity_range.as_ref())?.required,
            volume_group: volume_group.map_err(|error| invalid("parameters", error))?,
            places: places.ok_or(RouteError::Nowhere)?,
        })
    }

    /// The one node that is asked for, if it is one.
    pub(super) fn only_node(&self) -> Option<&NodeName> {
        match self.places.as_slice() {
            [place] => match place.as_slice() {
                [Segment::Node(node)] => Some(node),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the volume may be made on that node.
    pub(super) fn admits(&self, linked: &Linked) -> bool {
        self.places.is_empty() || self.places.iter().any(|place| place.iter().all(|part| is_at(part, linked)))
    }

    /// The nodes that are asked for by name.
    pub(super) fn named(&self) -> impl Iterator<Item = &NodeName> {
        self.places.iter().flatten().filter_map(|segment| match segment {
            Segment::Node(node) => Some(node),
            Segment::Vg(_) => None,
        })
    }

    /// The groups of a node that the volume may be made in.
    pub(super) fn choice(&self) -> Choice<'_> {
        Choice::of(self.volume_group.as_ref(), &[])
    }
}

fn is_at(segment: &Segment, linked: &Linked) -> bool {
    match segment {
        Segment::Node(node) => node == linked.session.node(),
        Segment::Vg(vg) => linked.state.groups.iter().any(|group| group.uuid == *vg),
    }
}

/// Why a create at one node came to nothing.
pub(super) enum Refusal {
    /// The node has no room, and has started nothing: another may be asked.
    NoRoom(Status),
    /// This is the answer.
    Final(Status),
}

impl From<RouteError> for Refusal {
    fn from(error: RouteError) -> Self {
        Self::Final(error.into())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoRoom(status) | Refusal::Final(status) => status,
        }
    }
}

impl Router {
    pub(super) async fn create(
        &self,
        wish: &Wish,
        caller: &MetadataMap,
        message: &proto::CreateVolumeRequest,
    ) -> Created {
        match wish.only_node() {
            Some(node) => Ok(self.create_at(wish, node, caller, message).await?),
            None => self.create_anywhere(wish, caller, message).await,
        }
    }

    /// Passes the call on to the node, if it is there and nothing stands against it.
    pub(super) async fn create_at(
        &self,
        wish: &Wish,
        node: &NodeName,
        caller: &MetadataMap,
        message: &proto::CreateVolumeRequest,
    ) -> Result<Response<proto::CreateVolumeResponse>, Refusal> {
        let linked = match self.parts.fleet.standing(node) {
            Standing::Linked(linked) => *linked,
            Standing::Joining => return Err(RouteError::Away(node.clone()).into()),
            Standing::Away(time) => {
                // What was passed on once may be made by now: only the node itself can say.
                let gone = time >= self.parts.fleet.pace().away
                    && self.names.holder(&wish.name).as_ref() != Some(node);
                let error = if gone { RouteError::Gone } else { RouteError::Away };
                return Err(error(node.clone()).into());
            }
        };
        let known = self.parts.nodes.known();
        if !known.is_listed() {
            return Err(RouteError::Unlisted.into());
        }
        if let Err(contest) = usable(&self.parts.fleet, &known, &linked, wish.choice()) {
            return Err(Refusal::Final(in_create(contest)));
        }
        self.pass_on(wish, &linked, caller, message).await
    }

    async fn pass_on(
        &self,
        wish: &Wish,
        linked: &Linked,
        caller: &MetadataMap,
        message: &proto::CreateVolumeRequest,
    ) -> Result<Response<proto::CreateVolumeResponse>, Refusal> {
        let session = &linked.session;
        self.names.passed_on(&wish.name, session.node());
        let cluster = self.parts.identity.borrow().clone();
        let request = passed_on_from(cluster.as_ref(), caller, message.clone());
        match node(session).create_volume(request).await {
            Err(status) if status.code() == Code::ResourceExhausted => {
                self.names.nothing_started(&wish.name, session.node());
                let vg = wish.volume_group.clone();
                self.parts.fleet.refused(session.node(), vg, wish.size, generation(&status));
                Err(Refusal::NoRoom(plain(&status)))
            }
            Err(status) => Err(Refusal::Final(plain(&status))),
            Ok(response) => self.label(linked, response).await.map_err(Refusal::Final),
        }
    }

    /// Hands the answer back once the volume's node has the label by which pods find it: the scheduler and
    /// the kubelet both refuse a node without it.
    async fn label(&self, linked: &Linked, response: Response<proto::CreateVolumeResponse>) -> Created {
        let session = &linked.session;
        let text = response.get_ref().volume.as_ref().map_or("", |volume| &volume.volume_id);
        let id: VolumeId = text.parse().map_err(|_| RouteError::Strange {
            node: session.node().clone(),
            what: "a volume whose id is none that Quarry gives".to_owned(),
        })?;
        span::volume(text);
        let labelled = self.parts.labels.ensure(session.object(), &id.vg).await;
        labelled.map_err(|source| RouteError::Label { id: id.to_string(), source })?;
        handed_back(Ok(response))
    }
}

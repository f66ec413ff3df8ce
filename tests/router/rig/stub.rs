use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::StreamExt as _;
use quarry::proto::csi::v1 as csi;
use quarry::proto::quarry::v1 as proto;
use quarry::types::LvName;
use tokio::sync::{Semaphore, watch};
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tonic::codegen::BoxStream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::MIB;

/// What stands for LVM on a node: groups with room, and volumes by name. Its states come only when a test
/// says so, but for changes of its own.
#[derive(Clone)]
pub(crate) struct Stub(Arc<Shared>);

struct Shared {
    inner: Mutex<Inner>,
    states: watch::Sender<proto::NodeState>,
    calls: watch::Sender<Vec<String>>,
    /// Creates whose name begins with `slow` wait for it, and all other calls while they are held up.
    release: Semaphore,
}

struct Inner {
    groups: Vec<proto::VolumeGroup>,
    generation: u64,
    token: std::path::PathBuf,
    /// Cancelled when its node stops.
    stop: CancellationToken,
    /// Ids by name.
    volumes: BTreeMap<String, String>,
    unused: Vec<Unused>,
    /// Whether a change of room is told at once.
    mute: bool,
    /// Whether deletions and expansions wait to be released.
    held: bool,
    /// Whether it is of a release without the Stock service.
    old: bool,
    /// What creates are refused with.
    refusal: Option<Status>,
}

/// A volume that was never used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unused {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) claim: (String, String),
    pub(crate) cluster: String,
}

impl Stub {
    pub(crate) fn new(vg: &str) -> Self {
        let group = proto::VolumeGroup {
            uuid: vg.to_owned(),
            name: "vg0".to_owned(),
            health: String::new(),
            available_bytes: 64 * MIB as u64,
            maximum_volume_bytes: 64 * MIB as u64,
        };
        let inner = Inner {
            groups: vec![group],
            generation: 1,
            token: Default::default(),
            stop: CancellationToken::new(),
            volumes: BTreeMap::new(),
            unused: Vec::new(),
            mute: false,
            held: false,
            old: false,
            refusal: None,
        };
        let stub = Self(Arc::new(Shared {
            inner: Mutex::new(inner),
            states: watch::channel(Default::default()).0,
            calls: watch::channel(Vec::new()).0,
            release: Semaphore::new(0),
        }));
        stub.tell();
        stub
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap()
    }

    /// Its node starts: with the token in `dir`, and until `stop` is cancelled.
    pub(super) fn begin(&self, dir: &Path, stop: CancellationToken) {
        let mut inner = self.inner();
        (inner.token, inner.stop) = (dir.join("token"), stop);
    }

    /// Sends a newer state.
    pub(crate) fn tell(&self) {
        let mut inner = self.inner();
        inner.generation += 1;
        let state = proto::NodeState { generation: inner.generation, volume_groups: inner.groups.clone() };
        self.0.states.send_replace(state);
    }

    /// Keeps changes of room to itself until it is told to tell.
    pub(crate) fn mute(&self) {
        self.inner().mute = true;
    }

    /// Changes its groups, and tells.
    pub(crate) fn groups(&self, change: impl FnOnce(&mut Vec<proto::VolumeGroup>)) {
        change(&mut self.inner().groups);
        self.tell();
    }

    /// The group with that UUID, by another name.
    pub(crate) fn group(vg: &str, name: &str, mib: u64) -> proto::VolumeGroup {
        proto::VolumeGroup {
            uuid: vg.to_owned(),
            name: name.to_owned(),
            health: String::new(),
            available_bytes: mib << 20,
            maximum_volume_bytes: mib << 20,
        }
    }

    /// Makes it one of a release that knows less. To be called before its node starts.
    pub(crate) fn age(&self) {
        self.inner().old = true;
    }

    pub(super) fn is_old(&self) -> bool {
        self.inner().old
    }

    pub(crate) fn refuse(&self, status: Option<Status>) {
        self.inner().refusal = status;
    }

    pub(crate) fn unused(&self, unused: Vec<Unused>) {
        self.inner().unused = unused;
    }

    pub(crate) fn volumes(&self) -> Vec<String> {
        self.inner().volumes.values().cloned().collect()
    }

    /// Every call so far, as `verb what`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.calls.borrow().clone()
    }

    /// Waits for a call.
    pub(crate) async fn called(&self, call: &str) {
        let mut calls = self.0.calls.subscribe();
        super::soon(call, calls.wait_for(|calls| calls.iter().any(|made| made == call))).await.unwrap();
    }

    /// Holds up deletions and expansions.
    pub(crate) fn hold(&self) {
        self.inner().held = true;
    }

    async fn released(&self, slow: bool) {
        let held = self.inner().held;
        if slow || held {
            self.0.release.acquire().await.unwrap().forget();
        }
    }

    /// Lets a call go on that waits.
    pub(crate) fn release(&self) {
        self.0.release.add_permits(1);
    }

    fn note(&self, verb: &str, what: &str) {
        self.0.calls.send_modify(|calls| calls.push(format!("{verb} {what}")));
    }

    fn exhausted(&self, words: &str) -> Status {
        let mut metadata = MetadataMap::new();
        metadata.insert("quarry-generation", self.inner().generation.to_string().parse().unwrap());
        Status::with_metadata(tonic::Code::ResourceExhausted, words, metadata)
    }

    fn make(&self, request: &csi::CreateVolumeRequest) -> Result<String, Status> {
        let wanted = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes.cast_unsigned());
        let vg = request.parameters.get("volumeGroup");
        let mut inner = self.inner();
        if let Some(id) = inner.volumes.get(&request.name) {
            return Ok(id.clone());
        }
        let group = inner.groups.iter_mut().find(|group| vg.is_none_or(|vg| *vg == group.name));
        let Some(group) = group.filter(|group| group.maximum_volume_bytes >= wanted) else {
            drop(inner);
            return Err(self.exhausted("no room here"));
        };
        group.maximum_volume_bytes -= wanted;
        group.available_bytes -= wanted;
        let lv = LvName::for_volume(&request.name.parse().unwrap());
        let id = format!("{}/{lv}", group.uuid);
        inner.volumes.insert(request.name.clone(), id.clone());
        let mute = inner.mute;
        drop(inner);
        if !mute {
            self.tell();
        }
        Ok(id)
    }
}

#[tonic::async_trait]
impl csi::controller_server::Controller for Stub {
    async fn create_volume(
        &self,
        request: Request<csi::CreateVolumeRequest>,
    ) -> Result<Response<csi::CreateVolumeResponse>, Status> {
        let cluster = request.metadata().get("quarry-cluster").map(|id| id.to_str().unwrap().to_owned());
        self.note("cluster", &cluster.unwrap_or_default());
        let deadline = request.metadata().get("grpc-timeout").map(|value| value.to_str().unwrap().to_owned());
        self.note("deadline", &deadline.unwrap_or_default());
        let request = request.into_inner();
        self.note("create", &request.name);
        let refusal = self.inner().refusal.clone();
        match refusal {
            Some(status) if status.code() == tonic::Code::ResourceExhausted => {
                return Err(self.exhausted(status.message()));
            }
            Some(status) => return Err(status),
            None => {}
        }
        self.released(request.name.starts_with("slow")).await;
        let volume_id = self.make(&request)?;
        let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        let volume = csi::Volume { volume_id, capacity_bytes, ..Default::default() };
        Ok(Response::new(csi::CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(
        &self,
        request: Request<csi::DeleteVolumeRequest>,
    ) -> Result<Response<csi::DeleteVolumeResponse>, Status> {
        let id = request.into_inner().volume_id;
        self.note("delete", &id);
        self.released(false).await;
        self.inner().volumes.retain(|_, made| *made != id);
        Ok(Response::new(csi::DeleteVolumeResponse {}))
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<csi::ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<csi::ValidateVolumeCapabilitiesResponse>, Status> {
        self.note("validate", &request.into_inner().volume_id);
        let message = "the node's own words".to_owned();
        Ok(Response::new(csi::ValidateVolumeCapabilitiesResponse { confirmed: None, message }))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<csi::ControllerExpandVolumeRequest>,
    ) -> Result<Response<csi::ControllerExpandVolumeResponse>, Status> {
        let request = request.into_inner();
        self.note("expand", &request.volume_id);
        self.released(false).await;
        let capacity_bytes = request.capacity_range.unwrap().required_bytes;
        if capacity_bytes > 1024 * MIB {
            return Err(Status::out_of_range("no room to grow"));
        }
        Ok(Response::new(csi::ControllerExpandVolumeResponse {
            capacity_bytes,
            node_expansion_required: false,
        }))
    }
}

#[tonic::async_trait]
impl proto::agent_server::Agent for Stub {
    async fn watch_state(
        &self,
        _: Request<proto::WatchStateRequest>,
    ) -> Result<Response<BoxStream<proto::NodeState>>, Status> {
        let stop = self.inner().stop.clone().cancelled_owned();
        let states = WatchStream::new(self.0.states.subscribe()).map(Ok);
        Ok(Response::new(Box::pin(states.take_until(stop))))
    }

    async fn identify(
        &self,
        _: Request<proto::IdentifyRequest>,
    ) -> Result<Response<proto::IdentifyResponse>, Status> {
        let path = self.inner().token.clone();
        Ok(Response::new(proto::IdentifyResponse { token: std::fs::read_to_string(path).unwrap() }))
    }
}

#[tonic::async_trait]
impl proto::stock_server::Stock for Stub {
    async fn find(
        &self,
        request: Request<proto::FindRequest>,
    ) -> Result<Response<proto::FindResponse>, Status> {
        let name = request.into_inner().name;
        self.note("find", &name);
        let volume_ids = self.inner().volumes.get(&name).cloned().into_iter().collect();
        Ok(Response::new(proto::FindResponse { volume_ids }))
    }

    async fn list_unused(
        &self,
        _: Request<proto::ListUnusedRequest>,
    ) -> Result<Response<proto::ListUnusedResponse>, Status> {
        self.note("list", "unused");
        let message = |unused: &Unused| proto::UnusedVolume {
            volume_id: unused.id.clone(),
            lv_uuid: format!("lv of {}", unused.id),
            name: unused.name.clone(),
            claim_namespace: unused.claim.0.clone(),
            claim_name: unused.claim.1.clone(),
            cluster: unused.cluster.clone(),
            age_seconds: 7200,
            size_bytes: 1,
        };
        let volumes = self.inner().unused.iter().map(message).collect();
        Ok(Response::new(proto::ListUnusedResponse { volumes }))
    }

    async fn remove_unused(
        &self,
        request: Request<proto::RemoveUnusedRequest>,
    ) -> Result<Response<proto::RemoveUnusedResponse>, Status> {
        let request = request.into_inner();
        assert_eq!(request.lv_uuid, format!("lv of {}", request.volume_id));
        self.note("remove", &request.volume_id);
        self.inner().unused.retain(|unused| unused.id != request.volume_id);
        Ok(Response::new(proto::RemoveUnusedResponse {}))
    }
}

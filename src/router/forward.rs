use http::HeaderMap;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

use crate::csi::convert::CLUSTER;
use crate::link::{Channel, Session};
use crate::proto::csi::v1::controller_client::ControllerClient;
use crate::types::{CallTimeout, ClusterId};

/// The client of a node's Controller service.
pub(super) type Node = ControllerClient<Channel>;

/// A call on its way to its owner: the message as it came, and how long its caller waits.
pub(super) fn passed_on<T>(caller: &MetadataMap, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(deadline) = caller.get(CallTimeout::HEADER) {
        request.metadata_mut().insert(CallTimeout::HEADER, deadline.clone());
    }
    request
}

/// The same, with word of the cluster that the volume is for.
pub(super) fn passed_on_from<T>(cluster: Option<&ClusterId>, caller: &MetadataMap, message: T) -> Request<T> {
    let mut request = passed_on(caller, message);
    if let Some(value) = cluster.and_then(|cluster| cluster.as_str().parse().ok()) {
        request.metadata_mut().insert(CLUSTER, value);
    }
    request
}

/// How the node can be called.
pub(super) fn node(session: &Session) -> Node {
    // The node's own messages are as large as it makes them; CSI's are small.
    ControllerClient::new(session.channel())
}

/// The node's answer, as the caller gets it: nothing of what it says beside the message is for others.
pub(super) fn handed_back<T>(answer: Result<Response<T>, Status>) -> Result<Response<T>, Status> {
    answer.map(|response| Response::new(response.into_inner())).map_err(|status| plain(&status))
}

/// A node's own refusal, or what stands for a connection that failed.
pub(super) fn plain(status: &Status) -> Status {
    let code = match status.code() {
        // No node answers these. csi-provisioner would take the first two for the end, and what was asked may
        // have been done.
        Code::Unknown | Code::Cancelled | Code::DeadlineExceeded => Code::Unavailable,
        code => code,
    };
    let message = match status.message() {
        "" => "the node did not say why",
        message => message,
    };
    Status::with_metadata(code, message, MetadataMap::from_headers(HeaderMap::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broken_connection_says_is_not_taken_for_the_end() {
        for code in [Code::Unknown, Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable] {
            assert_eq!(plain(&Status::new(code, "x")).code(), Code::Unavailable, "{code:?}");
        }
        for code in [Code::NotFound, Code::Internal, Code::ResourceExhausted, Code::Aborted] {
            assert_eq!(plain(&Status::new(code, "x")).code(), code);
        }
        assert!(!plain(&Status::internal("")).message().is_empty());
    }

    #[test]
    fn only_the_deadline_goes_along() {
        let mut caller = MetadataMap::new();
        caller.insert(CallTimeout::HEADER, "60S".parse().unwrap());
        caller.insert("secret", "x".parse().unwrap());
        let request = passed_on(&caller, ());
        assert_eq!(request.metadata().get(CallTimeout::HEADER).unwrap(), "60S");
        assert_eq!(request.metadata().len(), 1);
    }
}

//! The generated wire types: messages, clients and server traits.
//!
//! Only `csi`, `link` and `router` may import this module: everything below
//! them speaks in the types of `types`. The contract is `proto/`, the
//! generation `build.rs`. The `Debug` of a request that holds credentials
//! leaves them out, so requests can be printed; what a log line holds is still
//! chosen field by field.

/// The Container Storage Interface.
pub mod csi {
    /// CSI 1.x. See `proto/csi/v1/csi.proto` for what each field means.
    #[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("csi.v1");
    }
}

/// What Quarry's own nodes and controllers say to each other.
pub mod quarry {
    /// See `proto/quarry/v1/agent.proto` for what each field means.
    #[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("quarry.v1");
    }
}

include!(concat!(env!("OUT_DIR"), "/redacted.rs"));

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::csi::v1::{CreateVolumeRequest, DeleteVolumeRequest, NodeStageVolumeRequest};

    fn secrets() -> HashMap<String, String> {
        HashMap::from([("login".to_owned(), "hunter2".to_owned())])
    }

    #[test]
    fn debug_leaves_secrets_out() {
        let create =
            CreateVolumeRequest { name: "pvc-1".to_owned(), secrets: secrets(), ..Default::default() };
        let delete = DeleteVolumeRequest { volume_id: "vol-1".to_owned(), secrets: secrets() };
        let stage = NodeStageVolumeRequest {
            volume_id: "vol-2".to_owned(),
            secrets: secrets(),
            ..Default::default()
        };
        let printed = format!("{create:?} {delete:#?} {:?}", tonic::Request::new(stage));
        for shown in ["pvc-1", "vol-1", "vol-2"] {
            assert!(printed.contains(shown), "{shown} is missing in {printed}");
        }
        for hidden in ["login", "hunter2", "secrets"] {
            assert!(!printed.contains(hidden), "{hidden} is in {printed}");
        }
    }
}

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::router::api_server::ApiServer;

const MAPS: &str = "/api/v1/namespaces/quarry/configmaps";

/// What the kubelet has mounted into a node's pod: its token, and the CA's certificates.
pub(crate) struct Mounts {
    dir: Arc<tempfile::TempDir>,
    /// Ends what keeps the certificates fresh.
    _fresh: Option<DropGuard>,
}

impl Mounts {
    /// This token, and the certificates as the ConfigMap has them from now on.
    pub(crate) fn fresh(server: &ApiServer, token: &str) -> Self {
        let mut mounts = Self::stale(token, &bundle(server));
        let stop = CancellationToken::new();
        let keep = keep(server.clone(), Arc::clone(&mounts.dir));
        tokio::spawn(stop.clone().run_until_cancelled_owned(keep));
        mounts._fresh = Some(stop.drop_guard());
        mounts
    }

    /// This token, and these certificates whatever comes.
    pub(crate) fn stale(token: &str, bundle: &str) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        write(dir.path(), "token", token);
        write(dir.path(), "ca.crt", bundle);
        Self { dir, _fresh: None }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The kubelet has a newer token.
    pub(crate) fn renew(&self, token: &str) {
        write(self.path(), "token", token);
    }
}

async fn keep(server: ApiServer, dir: Arc<tempfile::TempDir>) {
    let (mut held, mut news) = (String::new(), server.news());
    loop {
        news.borrow_and_update();
        let bundle = bundle(&server);
        if bundle != held {
            write(dir.path(), "ca.crt", &bundle);
            held = bundle;
        }
        news.changed().await.unwrap();
    }
}

/// The certificates that nodes are to have.
pub(crate) fn bundle(server: &ApiServer) -> String {
    let map = server.get(MAPS, "quarry-ca").unwrap();
    map["data"]["ca.crt"].as_str().unwrap_or_default().to_owned()
}

/// As the kubelet does it: never half of a file.
fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join("new"), text).unwrap();
    std::fs::rename(dir.join("new"), dir.join(name)).unwrap();
}

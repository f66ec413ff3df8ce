//! The cluster itself, without a driver: a pod with an emptyDir runs, and a person can look into it.

use std::time::{Duration, Instant};

use crate::report::Remark;
use crate::{Cluster, Error};

const LIMIT: Duration = Duration::from_secs(120);

const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: scratch
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: registry.k8s.io/e2e-test-images/busybox:1.37.0-2
      command: [sh, -c, "echo started; echo kept > /data/file; exec sleep 3600"]
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, emptyDir: {} }]
"#;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("empty-dir").await?;
    let start = Instant::now();
    space.apply(POD).await?;
    space.pod_ready("scratch", LIMIT).await?;
    let ready = start.elapsed();

    expect("the pod's log", &space.logs("scratch").await?, "started\n")?;
    expect("the file", &space.exec_ok("scratch", &["cat", "/data/file"]).await?, "kept\n")?;
    let failed = space.exec("scratch", &["sh", "-c", "exit 7"]).await?;
    expect("the exit status", &failed.status.to_string(), "7")?;
    // By its short name, and by an address that kube-proxy makes work.
    space.exec_ok("scratch", &["nslookup", "kubernetes.default.svc.cluster.local"]).await?;
    space.exec_ok("scratch", &["sh", "-c", "nc -w 10 kubernetes.default 443 </dev/null"]).await?;
    space.remove().await?;
    Ok(format!("apply to Ready {:.1} s", ready.as_secs_f64()).into())
}

fn expect(what: &str, found: &str, wanted: &str) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::other(format!("{what}: {found:?}, not {wanted:?}")))
}

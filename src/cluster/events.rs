use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::PostParams;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::api::ask;
use super::{Cluster, ClusterError, Nodes, lease};

/// How many events may wait to be written. What comes on top is in the log only.
const QUEUE: usize = 256;

/// How long the same words about the same object are not repeated. The API server keeps events for an
/// hour, so that a trouble which lasts is always to be seen.
const REST: Duration = Duration::from_secs(600);

/// How many events are remembered for that.
const REMEMBERED: usize = 1024;

/// The longest note, in bytes (events.k8s.io/v1).
const LONGEST: usize = 1024;

/// Who writes the events.
const REPORTER: &str = "lvm.csi.quarry";

/// Where events about objects go that are in no namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A node.
    Node(String),
    /// A claim.
    Claim {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
    /// A PersistentVolume.
    Volume(String),
}

/// Something that a person may want to know who looks at an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Notice {
    /// The object.
    pub subject: Subject,
    /// Whether somebody should do something.
    pub warning: bool,
    /// One word for it, in camel case.
    pub reason: &'static str,
    /// What the driver did, one word in camel case.
    pub action: &'static str,
    /// The words.
    pub note: String,
}

/// Where events are handed in. Handing one in never waits and never fails.
#[derive(Debug, Clone)]
pub struct Events {
    queue: mpsc::Sender<Notice>,
}

impl Events {
    /// The events of this replica, and what writes them: it is to be run until `stop` is cancelled.
    pub fn new(
        cluster: &Cluster,
        nodes: Nodes,
        instance: &str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let writer = Writer { cluster: cluster.clone(), nodes, instance: instance.to_owned() };
        (Self { queue }, async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = writer.run(waiting) => {}
            }
        })
    }

    /// Has an event written, unless the same was written not long ago.
    pub fn tell(&self, notice: Notice) {
        if let Err(error) = self.queue.try_send(notice) {
            let (mpsc::error::TrySendError::Full(notice) | mpsc::error::TrySendError::Closed(notice)) = error;
            tracing::warn!(subject = ?notice.subject, reason = notice.reason, note = notice.note,
                "an event could not be handed in");
        }
    }
}

struct Writer {
    cluster: Cluster,
    nodes: Nodes,
    instance: String,
}

impl Writer {
    async fn run(self, mut waiting: mpsc::Receiver<Notice>) {
        let mut told = Told::default();
        while let Some(notice) = waiting.recv().await {
            let notice = Arc::new(notice);
            if !told.is_news(&notice, Instant::now()) {
                continue;
            }
            if let Err(error) = self.write(&notice).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    note = notice.note,
                    "an event was not written"
                );
            }
        }
    }

    async fn write(&self, notice: &Notice) -> Result<(), ClusterError> {
        let object = self.object(&notice.subject).await;
        let namespace = object.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        let now = lease::now();
        let mut event = Event {
            action: Some(notice.action.to_owned()),
            event_time: Some(now.clone()),
            note: Some(shortened(&notice.note)),
            reason: Some(notice.reason.to_owned()),
            reporting_controller: Some(REPORTER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if notice.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        // As client-go names them: the object, and a number that no other event about it has.
        let name = object.name.clone().unwrap_or_default();
        event.metadata.name = Some(format!("{name}.{:x}", now.0.as_nanosecond()));
        event.metadata.namespace = Some(namespace.clone());
        event.regarding = Some(object);
        let api: Api<Event> = Api::namespaced(self.cluster.client.clone(), &namespace);
        ask("write an event", api.create(&PostParams::default(), &event)).await.map(drop)
    }

    /// The object as events refer to it. `kubectl describe` finds an event by the object's UID, so it is
    /// looked up where it is not known; an event without it is still in `kubectl events`.
    async fn object(&self, subject: &Subject) -> ObjectReference {
        let (kind, namespace, name, uid) = match subject {
            Subject::Node(name) => {
                let uid = self.nodes.known().nodes.get(name).map(|node| node.uid.clone());
                ("Node", None, name, uid)
            }
            Subject::Claim { namespace, name, uid } => {
                ("PersistentVolumeClaim", Some(namespace.clone()), name, Some(uid.clone()))
            }
            Subject::Volume(name) => {
                ("PersistentVolume", None, name, self.cluster.volume_uid(name).await.ok().flatten())
            }
        };
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some(kind.to_owned()),
            namespace,
            name: Some(name.clone()),
            uid: uid.filter(|uid| !uid.is_empty()),
            ..ObjectReference::default()
        }
    }
}

fn shortened(note: &str) -> String {
    note[..note.floor_char_boundary(LONGEST)].to_owned()
}

/// What was told, and when.
#[derive(Default)]
struct Told(HashMap<Arc<Notice>, Instant>);

impl Told {
    fn is_news(&mut self, notice: &Arc<Notice>, now: Instant) -> bool {
        if self.0.get(notice).is_some_and(|told| now - *told < REST) {
            return false;
        }
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, told| now - *told < REST);
        }
        // Where so much happens at once, repeats are the smaller harm.
        if self.0.len() < REMEMBERED {
            self.0.insert(Arc::clone(notice), now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(note: &str) -> Arc<Notice> {
        let subject = Subject::Node("n1".to_owned());
        Arc::new(Notice { subject, warning: true, reason: "Reason", action: "Act", note: note.to_owned() })
    }

    #[tokio::test]
    async fn the_same_words_rest_for_a_while() {
        let (mut told, start) = (Told::default(), Instant::now());
        assert!(told.is_news(&notice("a"), start));
        assert!(told.is_news(&notice("b"), start));
        assert!(!told.is_news(&notice("a"), start + REST / 2));
        assert!(told.is_news(&notice("a"), start + REST));
    }

    #[tokio::test]
    async fn memory_for_what_was_told_is_bounded() {
        let (mut told, start) = (Told::default(), Instant::now());
        for number in 0..2 * REMEMBERED {
            assert!(told.is_news(&notice(&number.to_string()), start));
        }
        assert_eq!(told.0.len(), REMEMBERED);
        assert!(told.is_news(&notice("later"), start + REST) && told.0.len() == 1);
    }

    #[test]
    fn a_long_note_is_cut_between_letters() {
        assert!(shortened(&"ü".repeat(1000)).len() <= LONGEST);
    }
}

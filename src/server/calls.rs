use std::convert::Infallible;

use http::{Request, Response};
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceBuilder};

use super::{Detach, Measure, Report, Spans};

/// What stands around every call, wherever it comes in: a span with a running number, a task that outlives
/// its caller, a line in the log at its end, and what is measured of it. Clones count and track together.
#[derive(Debug, Clone)]
pub struct Calls {
    spans: Spans,
    measure: Measure,
    tracker: TaskTracker,
}

/// Services with all of that around them.
pub type Wrapped = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

impl Calls {
    /// Runs every handler on `tracker`.
    pub fn new(tracker: TaskTracker) -> Self {
        Self { spans: Spans::default(), measure: Measure::default(), tracker }
    }

    pub(super) fn spans(&self) -> Spans {
        self.spans.clone()
    }

    /// What is measured of the calls.
    pub const fn measure(&self) -> &Measure {
        &self.measure
    }

    pub(super) fn report(&self) -> Report {
        Report::new(self.measure.clone())
    }

    pub(super) fn detach(&self) -> Detach {
        Detach::new(self.tracker.clone())
    }

    pub(super) const fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Puts it around services that are served elsewhere than on a socket.
    pub fn wrap<S>(&self, services: S) -> Wrapped
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let layers = ServiceBuilder::new().layer(self.spans()).layer(self.detach()).layer(self.report());
        BoxCloneSyncService::new(layers.service(services))
    }
}

//! What is counted of calls: how long each took, and how it was answered.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tonic::Code;

/// What [`Report`](super::Report) counts: how long handlers took, and with which code they ended. Clones count together.
#[derive(Debug, Clone)]
pub struct Measure {
    seconds: Family<Rpc, Histogram>,
    answers: Family<Answer, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rpc {
    rpc: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    rpc: String,
    code: &'static str,
}

/// In seconds. The longest is that of a caller's usual patience.
const BUCKETS: [f64; 12] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0];

/// What calls are counted under that no service knows: whoever invents names must not invent series.
const UNKNOWN: &str = "unknown";

impl Default for Measure {
    fn default() -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        Self { seconds, answers: Family::default() }
    }
}

impl Measure {
    /// Lets `registry` show what is measured.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "rpc_duration",
            "How long handlers of calls took, whether or not their callers waited for them",
            Unit::Seconds,
            self.seconds.clone(),
        );
        registry.register("rpcs", "Calls that ended, by their gRPC code", self.answers.clone());
    }

    pub(super) fn ended(&self, method: &str, took: Duration, code: Code) {
        let rpc = if code == Code::Unimplemented { UNKNOWN } else { method }.to_owned();
        self.seconds.get_or_create(&Rpc { rpc: rpc.clone() }).observe(took.as_secs_f64());
        self.answers.get_or_create(&Answer { rpc, code: word(code) }).inc();
    }
}

/// The code as the specification of gRPC writes it.
const fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

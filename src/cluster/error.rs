use std::time::Duration;

/// An API server that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// It answered no.
    #[error("the API server refused to {what}: {message} (HTTP {code})")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// The HTTP status.
        code: u16,
        /// Its own words.
        message: String,
    },
    /// It could not be asked, or its answer could not be read.
    #[error("cannot {what}: the API server cannot be talked to")]
    Broken {
        /// What was asked.
        what: &'static str,
        /// The reason.
        #[source]
        source: Box<kube::Error>,
    },
    /// It did not answer.
    #[error("cannot {what}: the API server did not answer within {} s", .after.as_secs())]
    Silent {
        /// What was asked.
        what: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// An object lacks what every object of its kind has.
    #[error("cannot {what}: {why}")]
    Strange {
        /// What was asked.
        what: &'static str,
        /// What is strange.
        why: String,
    },
}

impl ClusterError {
    pub(super) fn of(what: &'static str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                Self::Refused { what, code: status.code, message: status.message.clone() }
            }
            source => Self::Broken { what, source: Box::new(source) },
        }
    }

    /// Somebody else changed the object first.
    pub(super) const fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { code: 409, .. })
    }

    /// There is no such object.
    pub(super) const fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }
}

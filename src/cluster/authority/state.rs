use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{ARRIVAL, LEAF_LIFE, SUCCESSION};

/// The form of what is stored. A release that finds a later one leaves it alone.
pub(super) const VERSION: u32 = 1;

/// All that the Secret holds, as one document: it is changed as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) version: u32,
    /// The one that signs.
    pub(super) current: Signer,
    /// The one that will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<Next>,
    /// The one that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) former: Option<Former>,
}

/// An authority that can sign.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Signer {
    /// Its common name.
    pub(super) name: String,
    /// In PEM.
    pub(super) certificate: String,
    /// In PEM. Never shown.
    pub(super) key: String,
    /// From when to when it is good, in seconds since 1970.
    pub(super) not_before: u64,
    pub(super) not_after: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Next {
    pub(super) signer: Signer,
    /// When the nodes' ConfigMap was seen to hold it, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Former {
    pub(super) certificate: String,
    /// When it signed for the last time at the latest, in seconds since 1970.
    pub(super) retired: u64,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing.
    Nothing,
    /// A next authority is to be made.
    Next,
    /// The next one has been with the nodes for long enough: it is to sign.
    Switch,
    /// Nothing that the former one signed is in use: the nodes need not know it any more.
    Forget,
    /// The present one has ended, since no controller ran for years: all begins anew.
    Anew,
}

impl State {
    pub(super) const fn new(current: Signer) -> Self {
        Self { version: VERSION, current, next: None, former: None }
    }

    pub(super) fn due(&self, now: SystemTime) -> Due {
        let now = seconds(now);
        if now >= self.current.not_after {
            return Due::Anew;
        }
        match (&self.next, &self.former) {
            // One step at a time.
            (_, Some(former)) => {
                // Whoever had read the old state may still sign by it for a while.
                let over = former.retired + (LEAF_LIFE + ARRIVAL).as_secs();
                if now >= over { Due::Forget } else { Due::Nothing }
            }
            (Some(next), None) => match next.published {
                Some(published) if now >= published + ARRIVAL.as_secs() => Due::Switch,
                _ => Due::Nothing,
            },
            (None, None) if now + SUCCESSION.as_secs() >= self.current.not_after => Due::Next,
            (None, None) => Due::Nothing,
        }
    }

    /// The next authority signs from now on.
    pub(super) fn switch(mut self, now: SystemTime) -> Self {
        if let Some(next) = self.next.take() {
            let before = std::mem::replace(&mut self.current, next.signer);
            self.former = Some(Former { certificate: before.certificate, retired: seconds(now) });
        }
        self
    }

    /// The certificates that nodes are to trust, the signing one first.
    pub(super) fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|next| &next.signer.certificate);
        let former = self.former.as_ref().map(|former| &former.certificate);
        let all = std::iter::once(&self.current.certificate).chain(next).chain(former);
        all.map(|certificate| format!("{}\n", certificate.trim())).collect()
    }
}

impl Signer {
    pub(super) fn is_good(&self, now: SystemTime) -> bool {
        (self.not_before..self.not_after).contains(&seconds(now))
    }

    pub(super) fn not_after(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.not_after)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::authority::{DAY, LIFE};

    const START: u64 = 1_900_000_000;

    fn signer(name: &str, from: u64) -> Signer {
        Signer {
            name: name.to_owned(),
            certificate: format!("cert of {name}\n"),
            key: "key".to_owned(),
            not_before: from,
            not_after: from + LIFE.as_secs(),
        }
    }

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    #[test]
    fn an_authority_is_followed_by_another_a_year_before_its_end() {
        let state = State::new(signer("a", START));
        assert_eq!(state.due(at(START)), Due::Nothing);
        let end = START + LIFE.as_secs();
        assert_eq!(state.due(at(end - 366 * DAY)), Due::Nothing);
        assert_eq!(state.due(at(end - 365 * DAY)), Due::Next);
    }

    #[test]
    fn the_next_one_signs_only_after_it_had_time_to_arrive() {
        let mut state = State::new(signer("a", START));
        state.next = Some(Next { signer: signer("b", START), published: None });
        assert_eq!(state.due(at(START + DAY)), Due::Nothing, "the nodes do not have it");
        state.next = Some(Next { signer: signer("b", START), published: Some(START) });
        assert_eq!(state.due(at(START + 3599)), Due::Nothing);
        assert_eq!(state.due(at(START + 3600)), Due::Switch);
        assert_eq!(state.bundle(), "cert of a\ncert of b\n");
    }

    #[test]
    fn the_former_one_stays_until_nothing_that_it_signed_is_in_use() {
        let mut state = State::new(signer("a", START));
        state.next = Some(Next { signer: signer("b", START), published: Some(START) });
        let state = state.switch(at(START));
        assert_eq!(state.current.name, "b");
        assert_eq!(state.bundle(), "cert of b\ncert of a\n");
        assert_eq!(state.due(at(START + 7 * DAY)), Due::Nothing);
        assert_eq!(state.due(at(START + 7 * DAY + 3600)), Due::Forget);
    }

    #[test]
    fn an_authority_that_has_ended_is_replaced_at_once() {
        let mut state = State::new(signer("a", START));
        state.next = Some(Next { signer: signer("b", START), published: None });
        assert_eq!(state.due(at(START + LIFE.as_secs())), Due::Anew);
    }

    #[test]
    fn what_is_stored_reads_back_and_shows_no_key() {
        let state = State::new(signer("a", START));
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
        assert!(!format!("{state:?}").contains("key"));
    }
}

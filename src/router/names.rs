use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::types::{CsiName, NodeName};

/// How long it is remembered to whom a create was passed on.
const MEMORY: Duration = Duration::from_secs(3600);

/// How many names are remembered; beyond that the oldest are forgotten.
const MOST: usize = 20_000;

/// To whom creates were passed on, by the volume's name. Where the answer was lost the volume may have been
/// made, so the same name goes to the same node.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    passed_on: HashMap<CsiName, (NodeName, Instant)>,
    /// Names that a place is being chosen for.
    placing: HashSet<CsiName>,
}

/// The right to choose a place for a name; others have to wait until it is dropped.
#[derive(Debug)]
pub(super) struct Placing {
    names: Names,
    name: CsiName,
}

impl Names {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` where another call is choosing.
    pub(super) fn place(&self, name: &CsiName) -> Option<Placing> {
        let free = self.known().placing.insert(name.clone());
        free.then(|| Placing { names: self.clone(), name: name.clone() })
    }

    /// A create of that name is about to be passed on to the node.
    pub(super) fn passed_on(&self, name: &CsiName, node: &NodeName) {
        let (mut known, now) = (self.known(), Instant::now());
        if known.passed_on.len() >= MOST {
            known.forget_old(now);
        }
        known.passed_on.insert(name.clone(), (node.clone(), now));
    }

    /// The node has said that it started nothing for that name.
    pub(super) fn nothing_started(&self, name: &CsiName, node: &NodeName) {
        let mut known = self.known();
        if known.passed_on.get(name).is_some_and(|(to, _)| to == node) {
            known.passed_on.remove(name);
        }
    }

    /// The node that may hold a volume of that name.
    pub(super) fn holder(&self, name: &CsiName) -> Option<NodeName> {
        let known = self.known();
        let (node, at) = known.passed_on.get(name)?;
        (at.elapsed() < MEMORY).then(|| node.clone())
    }
}

impl Known {
    fn forget_old(&mut self, now: Instant) {
        self.passed_on.retain(|_, (_, at)| now - *at < MEMORY);
        if self.passed_on.len() >= MOST {
            let mut times: Vec<Instant> = self.passed_on.values().map(|(_, at)| *at).collect();
            let (_, middle, _) = times.select_nth_unstable(MOST / 2);
            let middle = *middle;
            self.passed_on.retain(|_, (_, at)| *at > middle);
        }
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        self.names.known().placing.remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CsiName {
        text.parse().unwrap()
    }

    fn node(text: &str) -> NodeName {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_remembered_until_its_node_started_nothing_or_an_hour_has_passed() {
        let names = Names::default();
        names.passed_on(&name("a"), &node("n1"));
        names.passed_on(&name("b"), &node("n1"));
        names.nothing_started(&name("a"), &node("n2"));
        assert_eq!(names.holder(&name("a")), Some(node("n1")), "another node cannot say");
        names.nothing_started(&name("a"), &node("n1"));
        assert_eq!(names.holder(&name("a")), None);
        tokio::time::advance(MEMORY).await;
        assert_eq!(names.holder(&name("b")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_the_newest_stay() {
        let names = Names::default();
        for number in 0..MOST + 10 {
            names.passed_on(&name(&number.to_string()), &node("n1"));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(names.known().passed_on.len() <= MOST);
        assert!(names.holder(&name(&(MOST + 9).to_string())).is_some());
        assert!(names.holder(&name("0")).is_none());
    }

    #[test]
    fn one_call_at_a_time_chooses_a_place_for_a_name() {
        let names = Names::default();
        let first = names.place(&name("a")).unwrap();
        assert!(names.place(&name("a")).is_none() && names.place(&name("b")).is_some());
        drop(first);
        assert!(names.place(&name("a")).is_some());
    }
}

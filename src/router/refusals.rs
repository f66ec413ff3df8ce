use crate::types::{Bytes, VgName};

/// How many refusals of one node are told apart by group; of more, all groups are thought less of.
const MOST: usize = 64;

/// What a node has refused that its state does not show yet.
///
/// csi-provisioner asks for the capacity right after a refusal, and the scheduler goes by the answer: it
/// must be below what was refused, although the node's newer state may still be on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refusals(Vec<Refusal>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    /// The group that the class names; all of them where it names none.
    vg: Option<VgName>,
    /// The size that was refused.
    size: Bytes,
    /// States up to this one may be older than the refusal.
    generation: u64,
}

impl Refusals {
    /// A volume of that size was refused, when the node had given states up to that generation.
    pub(super) fn note(&mut self, vg: Option<VgName>, size: Bytes, generation: u64) {
        let vg = if self.0.len() < MOST { vg } else { None };
        match self.0.iter_mut().find(|refusal| refusal.vg == vg) {
            Some(refusal) => {
                refusal.size = refusal.size.min(size);
                refusal.generation = refusal.generation.max(generation);
            }
            None => self.0.push(Refusal { vg, size, generation }),
        }
    }

    /// The first state of a link has come, of that generation. A refusal that seems to be newer is of an earlier
    /// process of the node, which counted from a later time of day: the clock was set back, and what that process
    /// refused says nothing any more.
    pub(super) fn begin(&mut self, generation: u64) {
        self.0.retain(|refusal| refusal.generation == generation);
    }

    /// A later state of that generation has come.
    pub(super) fn outdate(&mut self, generation: u64) {
        self.0.retain(|refusal| refusal.generation >= generation);
    }

    /// The most that a group of that name can be said to have room for; `None` where nothing was refused.
    pub(super) fn ceiling(&self, vg: &VgName) -> Option<Bytes> {
        let of_it = self.0.iter().filter(|refusal| refusal.vg.as_ref().is_none_or(|name| name == vg));
        of_it.map(|refusal| refusal.size.saturating_sub(Bytes::new(1))).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vg(name: &str) -> VgName {
        name.parse().unwrap()
    }

    #[test]
    fn what_was_refused_is_not_offered_until_a_newer_state_came() {
        let mut refusals = Refusals::default();
        refusals.note(Some(vg("a")), Bytes::new(100), 7);
        refusals.note(Some(vg("a")), Bytes::new(200), 6);
        assert_eq!(refusals.ceiling(&vg("a")), Some(Bytes::new(99)));
        assert_eq!(refusals.ceiling(&vg("b")), None);
        refusals.outdate(7);
        assert_eq!(refusals.ceiling(&vg("a")), Some(Bytes::new(99)), "that state may be older");
        refusals.outdate(8);
        assert_eq!(refusals.ceiling(&vg("a")), None);
    }

    #[test]
    fn what_was_refused_ends_with_a_link_that_begins_with_an_older_state() {
        for (first, ceiling) in [(6, None), (7, Some(Bytes::new(99))), (8, None)] {
            let mut refusals = Refusals::default();
            refusals.note(Some(vg("a")), Bytes::new(100), 7);
            refusals.begin(first);
            assert_eq!(refusals.ceiling(&vg("a")), ceiling, "{first}");
        }
    }

    #[test]
    fn a_refusal_of_any_group_is_one_of_every_group() {
        let mut refusals = Refusals::default();
        refusals.note(None, Bytes::new(100), 1);
        assert_eq!(refusals.ceiling(&vg("a")), Some(Bytes::new(99)));
        refusals.note(Some(vg("a")), Bytes::ZERO, 1);
        assert_eq!(refusals.ceiling(&vg("a")), Some(Bytes::ZERO));
    }

    #[test]
    fn classes_without_end_do_not_fill_the_memory() {
        let mut refusals = Refusals::default();
        for number in 0..10_000 {
            refusals.note(Some(vg(&format!("vg{number}"))), Bytes::new(100), 1);
        }
        assert_eq!(refusals.0.len(), MOST + 1);
        assert_eq!(refusals.ceiling(&vg("other")), Some(Bytes::new(99)));
    }
}

use std::collections::{BTreeSet, HashMap};

use super::VgUuid;

/// Who has which volume group: nodes, say, by their names. Whoever asks for a group's need not look through all.
#[derive(Debug, Clone)]
pub struct ByGroup<T>(HashMap<VgUuid, BTreeSet<T>>);

impl<T> Default for ByGroup<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Ord + Clone> ByGroup<T> {
    /// Those who have the group, in order.
    pub fn of(&self, vg: &VgUuid) -> impl Iterator<Item = &T> {
        self.0.get(vg).into_iter().flatten()
    }

    /// The groups that anybody has.
    pub fn groups(&self) -> impl Iterator<Item = &VgUuid> {
        self.0.keys()
    }

    /// One has had those groups, and has these now.
    pub fn change<'a>(
        &mut self,
        one: &T,
        before: impl IntoIterator<Item = &'a VgUuid>,
        now: impl IntoIterator<Item = &'a VgUuid>,
    ) {
        for vg in before {
            self.remove(one, vg);
        }
        for vg in now {
            self.0.entry(vg.clone()).or_default().insert(one.clone());
        }
    }

    fn remove(&mut self, one: &T, vg: &VgUuid) {
        let Some(all) = self.0.get_mut(vg) else { return };
        all.remove(one);
        if all.is_empty() {
            self.0.remove(vg);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(letters: &str) -> Vec<VgUuid> {
        let uuid = |one| format!("{one}vlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4").parse().unwrap();
        letters.chars().map(uuid).collect()
    }

    #[test]
    fn a_group_has_those_who_have_it_now() {
        let (mut by_group, all) = (ByGroup::default(), groups("abc"));
        let of = |by_group: &ByGroup<&'static str>| -> Vec<String> {
            all.iter().map(|vg| by_group.of(vg).copied().collect::<Vec<_>>().join(" ")).collect()
        };
        by_group.change(&"n2", &[], &groups("bc"));
        by_group.change(&"n1", &[], &groups("ab"));
        assert_eq!(of(&by_group), ["n1", "n1 n2", "n2"]);
        by_group.change(&"n1", &groups("ab"), &groups("a"));
        assert_eq!(of(&by_group), ["n1", "n2", "n2"]);
        // One who says the same group twice has it once, and not at all when it is gone.
        by_group.change(&"n1", &groups("a"), &groups("aa"));
        assert_eq!(of(&by_group)[0], "n1");
        by_group.change(&"n1", &groups("aa"), &[]);
        by_group.change(&"n2", &groups("bc"), &[]);
        assert_eq!(by_group.groups().count(), 0, "nothing is kept of groups that nobody has");
    }
}

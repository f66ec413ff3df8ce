//! Which answers the model allows.

use tonic::Code;

use super::call::{Call, Outcome};
use super::facts::{Fact, Facts};
use crate::driver::Mode;

impl Facts {
    /// What is wrong with the outcome of a call that was made when this was known; nothing if nothing is.
    pub(super) fn wrong(&self, mode: Mode, call: &Call, outcome: &Outcome) -> Option<String> {
        match outcome {
            Outcome::Done { size } => self.wrong_when_done(mode, call, *size),
            Outcome::Refused { code, message } => {
                let code = Code::from(*code);
                let wrong = !self.may_be_refused(call, code);
                wrong.then(|| format!("it should not be refused with {code:?}: {message}"))
            }
            Outcome::Open => None,
            Outcome::Wrong { what } => Some(what.clone()),
        }
    }

    fn wrong_when_done(&self, mode: Mode, call: &Call, size: Option<u64>) -> Option<String> {
        let needs = match call {
            Call::Create { .. } => true,
            // What is not there is removed already.
            Call::Delete => !self.is_in_use(mode),
            Call::Unpublish | Call::Unstage => true,
            Call::Publish => self.exists.may_be(true) && self.can_be_published(mode),
            Call::Write { .. } | Call::Read | Call::Stats | Call::NodeExpand { .. } => {
                self.exists.may_be(true) && self.published.may_be(true)
            }
            Call::Stage | Call::Validate | Call::Expand { .. } => self.exists.may_be(true),
        };
        if !needs {
            return Some("it should have been refused".to_owned());
        }
        let after = self.after(call);
        let least = match call {
            Call::Create { size } => after.least.max(*size),
            _ => after.least,
        };
        let wrong = size.filter(|size| !(least..=after.most).contains(size))?;
        Some(format!("the size {wrong} is not between {least} and {}", after.most))
    }

    fn may_be_refused(&self, call: &Call, code: Code) -> bool {
        let gone = code == Code::NotFound && self.exists.may_be(false);
        match (call, code) {
            (Call::Create { .. }, Code::ResourceExhausted) => self.exists.may_be(false),
            // One that is too small.
            (Call::Create { size }, Code::AlreadyExists) => self.exists.may_be(true) && *size > self.least,
            (Call::Delete, Code::FailedPrecondition) => {
                self.staged.may_be(true) || self.published.may_be(true)
            }
            (Call::Publish, Code::FailedPrecondition) => self.staged.may_be(false),
            (Call::Expand { .. } | Call::NodeExpand { .. }, Code::OutOfRange) => self.exists.may_be(true),
            // It is not at that path.
            (Call::NodeExpand { .. } | Call::Stats, Code::NotFound) => self.published.may_be(false) || gone,
            (Call::Stage | Call::Publish | Call::Validate | Call::Expand { .. }, _) => gone,
            _ => false,
        }
    }

    /// Whether it is in use beyond doubt. A raw volume that is only staged is used by nobody.
    fn is_in_use(&self, mode: Mode) -> bool {
        self.exists == Fact::Yes
            && (self.published == Fact::Yes || (self.staged == Fact::Yes && mode != Mode::Block))
    }

    fn can_be_published(&self, mode: Mode) -> bool {
        match mode {
            Mode::Ext4 | Mode::Xfs | Mode::Btrfs => self.staged.may_be(true),
            Mode::Block => self.used.may_be(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Outcome = Outcome::Done { size: None };

    fn refused(code: Code) -> Outcome {
        Outcome::Refused { code: code.into(), message: String::new() }
    }

    fn staged() -> Facts {
        Facts::ABSENT.after(&Call::Create { size: 8 }).after(&Call::Stage)
    }

    #[test]
    fn what_is_in_use_is_not_removed_and_what_is_not_is() {
        let wrong = |mode, facts: &Facts, outcome| facts.wrong(mode, &Call::Delete, &outcome).is_some();
        let published = staged().after(&Call::Publish);
        for mode in [Mode::Ext4, Mode::Block] {
            assert!(wrong(mode, &published, DONE));
            assert!(!wrong(mode, &published, refused(Code::FailedPrecondition)));
            assert!(wrong(mode, &published, refused(Code::Internal)));
            assert!(!wrong(mode, &Facts::ABSENT, DONE));
        }
        assert!(wrong(Mode::Ext4, &staged(), DONE) && !wrong(Mode::Block, &staged(), DONE));
        let resting = staged().after(&Call::Unstage);
        assert!(wrong(Mode::Ext4, &resting, refused(Code::FailedPrecondition)));
    }

    #[test]
    fn an_answered_size_is_one_that_was_asked_for() {
        let done = |size| Outcome::Done { size: Some(size) };
        let open = staged().while_open(&Call::Expand { size: 16 });
        let wrong = |size| open.wrong(Mode::Ext4, &Call::Expand { size: 12 }, &done(size)).is_some();
        assert_eq!([8, 12, 16, 20].map(wrong), [true, false, false, true]);
        assert!(Facts::ABSENT.wrong(Mode::Ext4, &Call::Create { size: 8 }, &done(12)).is_some());
        assert!(staged().wrong(Mode::Ext4, &Call::Create { size: 12 }, &done(8)).is_some());
    }

    #[test]
    fn nothing_is_said_of_what_is_not_there() {
        for call in [Call::Stage, Call::Publish, Call::Validate, Call::Expand { size: 12 }] {
            assert!(Facts::ABSENT.wrong(Mode::Block, &call, &DONE).is_some(), "{call:?}");
            assert!(staged().wrong(Mode::Block, &call, &refused(Code::NotFound)).is_some(), "{call:?}");
            let open = Facts::ABSENT.while_open(&Call::Create { size: 8 }).while_open(&Call::Stage);
            assert_eq!(open.wrong(Mode::Block, &call, &refused(Code::NotFound)), None);
        }
        assert!(
            staged()
                .wrong(Mode::Block, &Call::Create { size: 8 }, &refused(Code::ResourceExhausted))
                .is_some()
        );
    }
}

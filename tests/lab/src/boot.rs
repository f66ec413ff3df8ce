//! Tests inside a guest: the test function runs on the host and once more in each guest that it boots.

use std::process;
use std::sync::atomic::Ordering;
use std::thread;

use crate::running::{End, Output, Running, Streams};
use crate::{Error, Job, Machine, inside};

/// How a guest has to end for its test to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Success,
    PowerCut,
}

impl Machine {
    /// Boots the machine and runs `closure` in it, as part of an ordinary `#[test]` function.
    ///
    /// On the host this starts a guest, which runs this very test again, and waits for its end. In that guest all other
    /// calls of `boot` do nothing, this one runs its closure and ends the process. The rest of the test function thus
    /// runs on both sides, and nothing but the disks goes from one guest to the next.
    ///
    /// # Panics
    ///
    /// When the lab cannot run on this host, the closure panics, does not run, or does not end within the limit.
    #[track_caller]
    pub fn boot(&self, closure: impl FnOnce()) {
        self.boot_step(Expected::Success, |_| (), closure);
    }

    /// Like [`Machine::boot`], for a closure that ends with [`crate::power_cut`].
    ///
    /// # Panics
    ///
    /// As [`Machine::boot`] does, and when the power was not cut.
    #[track_caller]
    pub fn boot_until_power_cut(&self, closure: impl FnOnce()) {
        self.boot_step(Expected::PowerCut, |_| (), closure);
    }

    /// Like [`Machine::boot`], and runs `host` on the host while `closure` runs in the guest.
    ///
    /// A guest whose power `host` has cut has ended as it should.
    ///
    /// # Panics
    ///
    /// As [`Machine::boot`] does, and when `host` panics, which also ends the guest.
    #[track_caller]
    pub fn boot_with(&self, host: impl FnOnce(&Running), closure: impl FnOnce()) {
        self.boot_step(Expected::Success, host, closure);
    }

    #[track_caller]
    fn boot_step(&self, expected: Expected, host: impl FnOnce(&Running), closure: impl FnOnce()) {
        let step = format!("{}.{}", self.number, self.boots.fetch_add(1, Ordering::Relaxed));
        match inside::step() {
            None => {
                if let Err(error) = self.boot_on_host(&step, expected, host) {
                    panic!("{error}");
                }
            }
            Some(own) if own == step => run_here(closure),
            Some(_) => {}
        }
    }

    fn boot_on_host(
        &self,
        step: &str,
        expected: Expected,
        host: impl FnOnce(&Running),
    ) -> Result<(), String> {
        let running = self.start_again(step).map_err(|error| error.chain())?;
        let folder = running.folder().to_owned();
        host(&running);
        let expected = if running.is_cut() { Expected::PowerCut } else { expected };
        let finished = running.wait().map_err(|error| {
            error.output().map(show);
            error.chain()
        })?;
        show(&finished.output);
        match (expected, finished.end) {
            (Expected::PowerCut, End::PowerCut) => Ok(()),
            (Expected::PowerCut, End::Exited(status)) => Err(format!(
                "the power should have been cut, but the guest's test ended with status {status}"
            )),
            (Expected::Success, End::PowerCut) => Err("the guest's power was cut without need".to_owned()),
            (Expected::Success, End::Exited(0)) if crate::messages::is_left(&folder, inside::PASSED) => {
                Ok(())
            }
            (Expected::Success, End::Exited(0)) => Err("the guest did not run the test's closure".to_owned()),
            (Expected::Success, End::Exited(status)) => {
                Err(format!("the test failed in its guest, with status {status}; see the output"))
            }
        }
    }

    /// Starts a guest that runs the calling test again.
    fn start_again(&self, step: &str) -> Result<Running, Error> {
        let own = std::env::current_exe().map_err(Error::io("find the running program"))?;
        let thread = thread::current();
        let test = match thread.name() {
            Some(name) if name != "main" => name,
            _ => {
                return Err(Error::Invalid("`boot` must be called on the thread of a test".to_owned()));
            }
        };
        let flags =
            ["--exact", test, "--nocapture", "--include-ignored", "--test-threads=1", "--color=never"];
        let arguments = std::iter::once(own.into_os_string()).chain(flags.map(Into::into));
        self.start(Job::new(arguments)?.env(inside::STEP, step), Streams::Capture)
    }
}

/// Runs the closure in the guest. A panic goes on into the test framework, which makes it the exit status.
fn run_here(closure: impl FnOnce()) {
    closure();
    match inside::tell(inside::PASSED) {
        // Not a return: what follows in the test function belongs to the host and to other guests.
        Ok(()) => process::exit(0),
        Err(error) => panic!("{}", error.chain()),
    }
}

/// Shows a guest's output as the test's own: the test framework keeps it for tests that fail.
#[expect(
    clippy::print_stdout,
    reason = "the test framework captures what these macros print, and nothing else"
)]
fn show(output: &Output) {
    for (name, text) in [("output", &output.stdout), ("errors", &output.stderr)] {
        if !text.is_empty() {
            println!("--- the guest's {name}:\n{}", String::from_utf8_lossy(text));
        }
    }
}

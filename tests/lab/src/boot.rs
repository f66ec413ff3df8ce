//! Tests inside a guest: the test function runs on the host and once more in each guest that it boots.

use std::process;
use std::sync::atomic::Ordering;
use std::thread;

use crate::on_host::is_on_host_wanted;
use crate::running::{End, Finished, Running, Streams};
use crate::{Error, Job, Machine, inside, messages};

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
    /// runs on both sides, and nothing but the disks goes from one guest to the next: a value that the closure borrows is
    /// the guest's own, made by the same lines, and what a closure changes is never seen outside it.
    ///
    /// # Panics
    ///
    /// When the lab cannot run on this host, the closure panics, does not run, or does not end within the limit.
    #[track_caller]
    pub fn boot(&self, closure: impl FnOnce()) {
        self.boot_step(Expected::Success, None::<fn(&Running)>, closure);
    }

    /// Like [`Machine::boot`], for a closure that ends with [`crate::power_cut`].
    ///
    /// # Panics
    ///
    /// As [`Machine::boot`] does, and when the power was not cut.
    #[track_caller]
    pub fn boot_until_power_cut(&self, closure: impl FnOnce()) {
        self.boot_step(Expected::PowerCut, None::<fn(&Running)>, closure);
    }

    /// Like [`Machine::boot`], and runs `host` on the host while `closure` runs in the guest.
    ///
    /// A guest whose power `host` has cut has ended as it should. The two can wait for each other with [`crate::tell`],
    /// [`crate::wait_for`] and their like in [`Running`].
    ///
    /// # Panics
    ///
    /// As [`Machine::boot`] does, and when `host` panics, which also ends the guest.
    #[track_caller]
    pub fn boot_with(&self, host: impl FnOnce(&Running), closure: impl FnOnce()) {
        self.boot_step(Expected::Success, Some(host), closure);
    }

    #[track_caller]
    fn boot_step<H>(&self, expected: Expected, host: Option<H>, closure: impl FnOnce())
    where
        H: FnOnce(&Running),
    {
        let step = format!("{}.{}", self.number, self.boots.fetch_add(1, Ordering::Relaxed));
        match inside::step() {
            None => {
                if let Err(reason) = self.boot_for(&step, expected, host) {
                    panic!("{reason}");
                }
            }
            Some(own) if own == step => run_here(closure),
            Some(_) => {}
        }
    }

    /// The host's half: runs the calling test again, where `step` makes it run its closure, and judges the end.
    fn boot_for<H>(&self, step: &str, expected: Expected, host: Option<H>) -> Result<(), String>
    where
        H: FnOnce(&Running),
    {
        match this_test(step).and_then(|job| self.run_for(job, expected, host)) {
            Ok((finished, expected)) => {
                finished.output.show();
                judge(expected, &finished)
            }
            Err(error) => {
                if let Some(output) = error.output() {
                    output.show();
                }
                Err(error.chain())
            }
        }
    }

    /// Runs the job to its end, and returns also how it should have ended, which the host's half may have changed.
    fn run_for<H>(&self, job: Job, expected: Expected, host: Option<H>) -> Result<(Finished, Expected), Error>
    where
        H: FnOnce(&Running),
    {
        if is_on_host_wanted() {
            if host.is_some() || expected == Expected::PowerCut {
                return Err(Error::Invalid("this test needs a guest: leave out LAB_ON_HOST".to_owned()));
            }
            return Ok((self.run_on_host(job, Streams::Capture)?, expected));
        }
        let running = self.start(job, Streams::Capture)?;
        if let Some(host) = host {
            host(&running);
        }
        let expected = if running.is_cut() { Expected::PowerCut } else { expected };
        Ok((running.wait()?, expected))
    }
}

/// Whether a boot ended as its test wants it.
fn judge(expected: Expected, finished: &Finished) -> Result<(), String> {
    let ran = messages::is_left(&finished.folder, inside::PASSED);
    match (expected, finished.end) {
        (Expected::PowerCut, End::PowerCut) => Ok(()),
        (Expected::PowerCut, End::Exited(status)) => {
            Err(format!("the power should have been cut, but the guest's test ended with status {status}"))
        }
        (Expected::Success, End::PowerCut) => Err("the guest's power was cut without need".to_owned()),
        (Expected::Success, End::Exited(0)) if ran => Ok(()),
        (Expected::Success, End::Exited(0)) => Err("the guest did not run the test's closure".to_owned()),
        (Expected::Success, End::Exited(status)) => {
            Err(format!("the test failed in its guest, with status {status}; see the output"))
        }
    }
}

/// A job that runs the calling test again, up to this step.
fn this_test(step: &str) -> Result<Job, Error> {
    let own = std::env::current_exe().map_err(Error::io("find the running program"))?;
    let thread = thread::current();
    // The test framework names the thread of each test after it.
    let test = match thread.name() {
        Some(name) if name != "main" => name,
        _ => return Err(Error::Invalid("`boot` must be called on the thread of a test".to_owned())),
    };
    let flags = ["--exact", test, "--nocapture", "--include-ignored", "--test-threads=1", "--color=never"];
    let arguments = std::iter::once(own.into_os_string()).chain(flags.map(Into::into));
    Ok(Job::new(arguments)?.env(inside::STEP, step))
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

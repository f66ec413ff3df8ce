//! The host's part: boot a guest, and run this program in it.

use std::process::ExitCode;
use std::time::Duration;

use lab::{End, Finished, Job, Machine, Streams};

use crate::screen::{FORCE_COLOUR, Screen};
use crate::{Error, Options};

/// Far more than it takes.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn run(options: &Options) -> Result<ExitCode, Error> {
    let screen = Screen::new();
    screen.heading("\nQuarry: a volume's life, on real LVM");
    screen.note(&format!(
        "It is played in a guest: a Linux kernel that runs as a process, with an empty disk of {}.",
        options.disk
    ));
    screen.note("No disk and no volume group of this machine is touched.");
    match play(options, &screen)?.end {
        End::Exited(status) => Ok(u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from)),
        End::PowerCut => Err(Error::Wrong("the guest's power was cut".to_owned())),
    }
}

fn play(options: &Options, screen: &Screen) -> Result<Finished, Error> {
    let own = std::env::current_exe().map_err(Error::io("find this program"))?;
    let mut job =
        Job::new([own.into_os_string()].into_iter().chain(std::env::args_os().skip(1)).collect::<Vec<_>>())?;
    if screen.has_colours() {
        job = job.env(FORCE_COLOUR, "1");
    }
    let machine = Machine::new().disk(&options.disk).limit(LIMIT);
    if lab::is_on_host_wanted() {
        return Ok(machine.run_on_host(job, Streams::Inherit)?);
    }
    Ok(machine.start(job, Streams::Inherit)?.wait()?)
}

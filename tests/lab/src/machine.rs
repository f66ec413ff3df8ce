//! A machine: some disks, some memory, and one guest after another on them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::kernel::{self, Hardware, Network};
use crate::launch;
use crate::running::{Finished, Running, Streams};
use crate::scratch::Scratch;
use crate::size::parse_size;
use crate::slots::Slot;
use crate::supervisor::Charge;
use crate::{Error, Job, inside, job, on_host};

/// A machine that real LVM can be tried on. Its disks live as long as this value does.
///
/// It is described first, and started with one of the `boot` functions (in a test) or with [`Machine::start`].
/// A mistake in the description is reported when it is started.
#[derive(Debug)]
pub struct Machine {
    disks: Vec<Disk>,
    memory: u64,
    limit: Duration,
    udev: bool,
    raid6: bool,
    network: Option<Network>,
    counted: bool,
    shares: Vec<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    mistake: Option<String>,
    /// Tells the machines of one test apart; the host and the guests count alike.
    pub(crate) number: usize,
    pub(crate) boots: AtomicUsize,
    home: Mutex<Option<Home>>,
}

#[derive(Debug, Clone)]
enum Disk {
    Empty(u64),
    File(PathBuf),
}

/// What a machine has on the host once it has been started.
#[derive(Debug)]
struct Home {
    scratch: Scratch,
    disks: Vec<PathBuf>,
    jobs: usize,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

impl Machine {
    /// A machine without disks, with 512 MiB of memory, no udev, and a limit of 5 minutes for each start.
    pub fn new() -> Machine {
        Machine {
            disks: Vec::new(),
            memory: 512 << 20,
            limit: Duration::from_secs(300),
            udev: false,
            raid6: false,
            network: None,
            counted: true,
            shares: Vec::new(),
            environment: Vec::new(),
            mistake: None,
            number: inside::count_machine(),
            boots: AtomicUsize::new(0),
            home: Mutex::new(None),
        }
    }

    /// Adds an empty disk of a size such as `"1G"`. It takes room on the host only where it is written to.
    #[must_use]
    pub fn disk(self, size: &str) -> Machine {
        self.parsed(size, |machine, bytes| machine.disks.push(Disk::Empty(bytes)))
    }

    /// Adds a disk whose content is an existing file on the host, which keeps what the guest writes.
    #[must_use]
    pub fn disk_file(mut self, file: impl Into<PathBuf>) -> Machine {
        self.disks.push(Disk::File(file.into()));
        self
    }

    /// Sets the size of the memory, such as `"512M"`.
    #[must_use]
    pub fn memory(self, size: &str) -> Machine {
        self.parsed(size, |machine, bytes| machine.memory = bytes)
    }

    /// Sets how long one start of the machine may take, from power on to power off.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Machine {
        self.limit = limit;
        self
    }

    /// Runs `systemd-udevd`, as a real host does. Without it `DM_DISABLE_UDEV=1` is set for the job.
    #[must_use]
    pub fn udev(mut self) -> Machine {
        self.udev = true;
        self
    }

    /// Makes RAID 6 work, in LVM and in btrfs. It more than doubles the time of a start, and is left out otherwise:
    /// the kernel of a machine without it dies where RAID 6 would compute something.
    #[must_use]
    pub fn raid6(mut self) -> Machine {
        self.raid6 = true;
        self
    }

    /// Gives the guest a network interface, `vec0`, with this hardware address. Its other end is a tap device that exists
    /// already, in the network namespace of the caller.
    #[must_use]
    pub fn network(mut self, tap: &str, address: [u8; 6]) -> Machine {
        // The kernel's option ends at a comma.
        if tap.is_empty() || tap.contains(|c: char| !c.is_ascii_alphanumeric()) {
            self.mistake = Some(format!("{tap:?} is no name of a tap device"));
        }
        self.network = Some(Network { tap: tap.to_owned(), address });
        self
    }

    /// Starts at once, whatever number of guests runs already: for machines that need each other to go on.
    #[must_use]
    pub fn uncounted(mut self) -> Machine {
        self.counted = false;
        self
    }

    /// Lets the guest write into this folder of the host. Everything else that it writes is gone when it ends.
    #[must_use]
    pub fn share(mut self, folder: impl Into<PathBuf>) -> Machine {
        self.shares.push(folder.into());
        self
    }

    /// Sets an environment variable for all jobs on this machine.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Machine {
        self.environment.push((name.into(), value.into()));
        self
    }

    fn parsed(mut self, size: &str, apply: impl FnOnce(&mut Machine, u64)) -> Machine {
        match parse_size(size) {
            Ok(bytes) => apply(&mut self, bytes),
            Err(error) => self.mistake = Some(error.to_string()),
        }
        self
    }

    /// Starts a guest that runs `job` and then turns itself off.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] when this host lacks something that the lab needs, [`Error::Invalid`] when the machine's
    /// description is wrong, [`Error::Io`] when the host has no room or no process to spare.
    pub fn start(&self, job: Job, streams: Streams) -> Result<Running, Error> {
        let kernel = kernel::find()?;
        let binary = launch::lab_binary()?;
        let mut home = self.home()?;
        let home = home.as_mut().ok_or_else(|| Error::Invalid("the machine has no folder".into()))?;
        let folder = home.next_job(&binary)?;
        let names = (0..home.disks.len()).map(|number| Path::new("/dev").join(kernel::disk_name(number)));
        let names: Vec<_> = names.collect();
        self.complete(job, &names, Path::new(job::GUEST_FOLDER), self.udev)?.save(&folder)?;
        let hardware = Hardware {
            disks: home.disks.clone(),
            memory: self.memory,
            raid6: self.raid6,
            network: self.network.clone(),
        };
        let charge = Charge {
            kernel: [vec![kernel.into_os_string()], kernel::command_line(&hardware, &folder)].concat(),
            job: folder,
            owner: home.scratch.path().to_owned(),
            limit: self.limit,
        };
        let slot = if self.counted { Some(Slot::take()?) } else { None };
        Running::start(&binary, charge, streams, hardware.disks.len(), slot)
    }

    /// Runs `job` on this host itself, with loop devices as its disks, and waits for its end.
    ///
    /// It sees the host's own volume groups, so nothing but a person's wish should lead here. The memory, udev and the
    /// file systems are the host's.
    ///
    /// # Errors
    ///
    /// As [`Machine::start`] and [`Running::wait`] do; [`Error::Missing`] when the host has no device mapper.
    pub fn run_on_host(&self, job: Job, streams: Streams) -> Result<Finished, Error> {
        let mut home = self.home()?;
        let home = home.as_mut().ok_or_else(|| Error::Invalid("the machine has no folder".into()))?;
        let folder = home.next_job(&launch::lab_binary()?)?;
        let udev = Path::new("/run/udev/control").exists();
        let (end, output) =
            on_host::run(&home.disks, self.limit, streams, |disks| self.complete(job, disks, &folder, udev))?;
        Ok(Finished { end, output, folder })
    }

    /// Adds what the machine's description says to a job.
    fn complete(&self, mut job: Job, disks: &[PathBuf], folder: &Path, udev: bool) -> Result<Job, Error> {
        if job.arguments.is_empty() {
            return Err(Error::Invalid("no command is given".into()));
        }
        let names: Vec<_> = disks.iter().map(|disk| disk.to_string_lossy()).collect();
        job = job.env(inside::DISKS, names.join(":")).env(inside::FOLDER, folder);
        if !udev {
            job = job.env("DM_DISABLE_UDEV", "1");
        }
        job.environment.extend(self.environment.iter().cloned());
        job.udev = self.udev;
        for share in &self.shares {
            job.shares.push(fs::canonicalize(share).map_err(Error::at("share", share))?);
        }
        Ok(job)
    }

    /// The machine's place on the host, made at its first start.
    fn home(&self) -> Result<MutexGuard<'_, Option<Home>>, Error> {
        let mut home = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        if home.is_none() {
            *home = Some(self.make_home()?);
        }
        Ok(home)
    }

    fn make_home(&self) -> Result<Home, Error> {
        if let Some(mistake) = &self.mistake {
            return Err(Error::Invalid(mistake.clone()));
        }
        if self.disks.len() > kernel::MOST_DISKS {
            return Err(Error::Invalid(format!("a machine can have {} disks", kernel::MOST_DISKS)));
        }
        let scratch = Scratch::create()?;
        let disks: Result<Vec<_>, _> = self
            .disks
            .iter()
            .enumerate()
            .map(|(number, disk)| disk.make(&scratch.path().join(format!("disk{number}"))))
            .collect();
        Ok(Home { disks: disks?, scratch, jobs: 0 })
    }
}

impl Disk {
    fn make(&self, path: &Path) -> Result<PathBuf, Error> {
        match self {
            Disk::Empty(size) => make_disk(path, *size)?,
            Disk::File(file) => {
                let file = fs::canonicalize(file).map_err(Error::at("use the disk", file))?;
                symlink(&file, path).map_err(Error::at("link the disk", &file))?;
            }
        }
        Ok(path.to_owned())
    }
}

/// Makes the file behind an empty disk.
pub(crate) fn make_disk(path: &Path, size: u64) -> Result<(), Error> {
    File::create_new(path).and_then(|file| file.set_len(size)).map_err(Error::at("make the disk", path))
}

impl Home {
    /// Makes the folder of the next job.
    fn next_job(&mut self, binary: &Path) -> Result<PathBuf, Error> {
        let folder = self.scratch.path().join(format!("job{}", self.jobs));
        self.jobs += 1;
        for name in [&folder, &folder.join(job::EMPTY), &folder.join(job::MESSAGES)] {
            fs::create_dir(name).map_err(Error::at("make", name))?;
        }
        let link = folder.join(job::INIT);
        symlink(binary, &link).map_err(Error::at("make", &link))?;
        Ok(folder)
    }
}

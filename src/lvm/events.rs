use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Group, Groups, Health};
use crate::types::chain;

/// How long to wait after an event before looking: one vgcreate makes several.
const DEBOUNCE: Duration = Duration::from_millis(300);

/// How long after a look the next one is due, whatever events come: some changes make none that reaches a
/// container.
const SLOW: Duration = Duration::from_secs(60);

/// Looks for new and changed volume groups: when somebody's lvm command takes a lock that no group of
/// ours is under, when a disk comes, goes or holds something new, and once a minute.
///
/// Changes inside a known group need no event: each use of it reads its metadata header.
pub async fn watch(groups: Arc<Groups>, lock_dir: PathBuf, stop: CancellationToken) {
    let mut locks = Source::new("the lock directory", LockFiles::open(&lock_dir));
    let mut disks = Source::new("the kernel's device events", Uevents::open());
    let mut due = Instant::now() + SLOW;
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return,
            _ = locks.event(|name| concerns(&groups, name).then_some(())) => None,
            disk = disks.event(disk) => disk,
            () = tokio::time::sleep_until(due) => None,
        };
        if let Some(Disk::Written(device)) = told
            && groups.knows_what_is_on(&device).await
        {
            tracing::debug!(device = %device.display(), "written to, and known");
            continue;
        }
        if stop.run_until_cancelled(tokio::time::sleep(DEBOUNCE)).await.is_none() {
            return;
        }
        if let Err(error) = groups.rescan().await {
            tracing::warn!(error = chain(&error), "cannot look for volume groups");
        }
        due = Instant::now() + SLOW;
    }
}

/// Whether a lock file says that something may have happened which no known group will notice by
/// itself: `V_<name>` is the lock of one group, `P_global` that of the set of all. An unhealthy group is
/// not looked at by anybody who uses it, and may have been mended.
fn concerns(groups: &Groups, lock: &[u8]) -> bool {
    let Some(name) = lock.strip_prefix(b"V_") else { return lock.starts_with(b"P_") };
    let name = name.strip_suffix(b":aux").unwrap_or(name);
    let notices = |group: &Group| group.health().is_ok_and(|health| health == Health::Healthy);
    let known = |group: &Arc<Group>| group.name().is_some_and(|known| known.as_str().as_bytes() == name);
    !groups.all().iter().any(|group| known(group) && notices(group))
}

/// What a uevent tells of a disk.
#[derive(Debug, PartialEq, Eq)]
enum Disk {
    /// It came or went.
    ComeOrGone,
    /// Somebody may have written to this device: udev lets the kernel say so whenever one that was open
    /// for writing is closed (inotify(7), the `watch` option of udev(7)), as after each of our commits.
    Written(PathBuf),
}

/// Reads a uevent, if it is about a disk. Device mapper's own are left out: each of our activations makes
/// one.
fn disk(event: &[u8]) -> Option<Disk> {
    let field = |key: &[u8]| event.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(key));
    let name = field(b"DEVNAME=").filter(|name| !name.starts_with(b"dm-"))?;
    if field(b"SUBSYSTEM=")? != b"block" {
        return None;
    }
    if field(b"ACTION=")? != b"change" {
        return Some(Disk::ComeOrGone);
    }
    Some(Disk::Written(Path::new("/dev").join(OsStr::from_bytes(name))))
}

/// Something that tells of events.
trait Events: AsRawFd {
    /// Takes one batch of events, if there is one.
    fn take(&self) -> nix::Result<Vec<Vec<u8>>>;
}

/// A source of events, or the fact that there is none.
struct Source<E: Events>(Option<AsyncFd<E>>);

impl<E: Events> Source<E> {
    fn new(what: &str, opened: io::Result<E>) -> Self {
        match opened.and_then(|events| register(events)) {
            Ok(events) => Self(Some(events)),
            Err(error) => {
                tracing::warn!(%error, "{what} cannot be watched: changes are noticed within a minute");
                Self(None)
            }
        }
    }

    /// Waits for an event of which `judge` makes something; for ever where there is no source. `None` is
    /// an event that nobody could read.
    async fn event<T>(&mut self, judge: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        loop {
            let Some(events) = &self.0 else { return std::future::pending().await };
            let taken = events.async_io(Interest::READABLE, |events| Ok(events.take()?)).await;
            match taken {
                Ok(batch) => {
                    if let Some(told) = batch.iter().find_map(|event| judge(event)) {
                        return Some(told);
                    }
                }
                // More came than the kernel kept: any of it may have mattered.
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => return None,
                Err(error) => {
                    tracing::warn!(%error, "events have ended: changes are noticed within a minute");
                    self.0 = None;
                }
            }
        }
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe; here a source owns its one descriptor as long as it lives"
)]
fn register<E: Events>(events: E) -> io::Result<AsyncFd<E>> {
    AsyncFd::with_interest(events, Interest::READABLE)
}

/// Lock files that an lvm command opened.
struct LockFiles(Inotify);

impl LockFiles {
    fn open(dir: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        inotify.add_watch(dir, AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_DELETE)?;
        Ok(Self(inotify))
    }
}

impl AsRawFd for LockFiles {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Events for LockFiles {
    fn take(&self) -> nix::Result<Vec<Vec<u8>>> {
        let names = self.0.read_events()?.into_iter().filter_map(|event| event.name);
        Ok(names.map(|name| name.into_encoded_bytes()).collect())
    }
}

/// The kernel's messages about devices (netlink(7), NETLINK_KOBJECT_UEVENT).
struct Uevents(OwnedFd);

/// The group in which the kernel itself speaks; udev speaks in another.
const KERNEL: u32 = 1;

/// The kernel's own limit on a message is below this, in bytes.
const LONGEST: usize = 16 << 10;

impl Uevents {
    fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::NetlinkKObjectUEvent;
        let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL))?;
        Ok(Self(socket))
    }
}

impl AsRawFd for Uevents {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Events for Uevents {
    fn take(&self) -> nix::Result<Vec<Vec<u8>>> {
        let mut buffer = vec![0; LONGEST];
        let length = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        buffer.truncate(length);
        Ok(vec![buffer])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disks_that_are_not_device_mappers_matter() {
        let event = |action: &str, name: &str| {
            format!("{action}@/devices/x\0ACTION={action}\0SUBSYSTEM=block\0DEVNAME={name}\0").into_bytes()
        };
        assert_eq!(disk(&event("add", "sdb")), Some(Disk::ComeOrGone));
        assert_eq!(disk(&event("remove", "sdb")), Some(Disk::ComeOrGone));
        assert_eq!(disk(&event("change", "sdb")), Some(Disk::Written("/dev/sdb".into())));
        assert_eq!(disk(&event("change", "dm-3")), None);
        assert_eq!(disk(b"add@/devices/y\0ACTION=add\0SUBSYSTEM=net\0INTERFACE=eth0\0"), None);
    }

    #[tokio::test]
    async fn a_new_lock_file_is_an_event() {
        let dir = tempfile::tempdir().unwrap();
        let mut source = Source::new("test", LockFiles::open(dir.path()));
        std::fs::write(dir.path().join("P_global"), "").unwrap();
        let seen = source.event(|name| (name == b"P_global").then_some(()));
        tokio::time::timeout(Duration::from_secs(10), seen).await.expect("no event came");
    }
}

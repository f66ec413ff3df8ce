use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, UnixAddr};
use nix::sys::stat::{Mode, fchmod};
use tokio::net::UnixListener;

use super::Endpoint;

/// A socket that nobody can serve on.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Somebody serves there.
    #[error("another process serves on {}: stop it first, or choose another endpoint", .0.display())]
    Live(PathBuf),
    /// Another process is at this very moment deciding about the same socket.
    #[error("another process is starting to serve beside {}: try again", .0.display())]
    Starting(PathBuf),
    /// What stands at the path is not a socket, so it is not ours to remove.
    #[error("{} exists and is not a socket: choose another endpoint", .0.display())]
    Occupied(PathBuf),
    /// The system refused.
    #[error("{}: {what}", .path.display())]
    System {
        /// The socket, or its directory.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The reason.
        #[source]
        source: io::Error,
    },
}

/// A bound socket, on which connections already queue up. Its file goes when this is dropped.
#[derive(Debug)]
pub struct Socket {
    pub(super) listener: UnixListener,
    /// Last, so that the socket is closed before its name is free for another.
    _file: SocketFile,
}

/// The socket's file, removed at the end if it is still the same one.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Socket {
    /// Binds the endpoint with mode 0600, makes its directory where there is none, and puts a stale
    /// socket out of the way. Blocks for file-system calls: it is for the start of the driver, from
    /// within a runtime.
    ///
    /// # Errors
    /// Somebody serves there, something else than a socket stands there, or the system refused.
    pub fn bind(endpoint: &Endpoint) -> Result<Self, SocketError> {
        let path = endpoint.path();
        let system = |what| move |source| SocketError::System { path: path.to_owned(), what, source };
        // Two drivers that start at once must not take each other's new socket for a stale one.
        let lock = lock_directory(path)?;
        let descriptor = bind_private(path)?;
        socket::listen(&descriptor, Backlog::MAXCONN).map_err(|e| system("cannot listen")(e.into()))?;
        let file = SocketFile::at(path).map_err(system("cannot be looked at"))?;
        drop(lock);
        let listener = UnixListener::from_std(descriptor.into()).map_err(system("cannot be served on"))?;
        Ok(Self { listener, _file: file })
    }
}

/// Binds, and once more after a stale socket was removed.
fn bind_private(path: &Path) -> Result<OwnedFd, SocketError> {
    let system = |what| {
        move |source: Errno| SocketError::System { path: path.to_owned(), what, source: source.into() }
    };
    let address = UnixAddr::new(path).map_err(system("is no address of a socket"))?;
    let descriptor = stream().map_err(system("cannot be made"))?;
    // Linux gives the file the mode that the socket has when it is bound: at no time can anybody else
    // connect, and the process-wide umask stays as it is.
    fchmod(&descriptor, Mode::S_IRUSR | Mode::S_IWUSR).map_err(system("cannot be made private"))?;
    match socket::bind(descriptor.as_raw_fd(), &address) {
        Err(Errno::EADDRINUSE) => {
            remove_stale(path, &address)?;
            socket::bind(descriptor.as_raw_fd(), &address).map_err(system("cannot be bound"))?;
        }
        result => result.map_err(system("cannot be bound"))?,
    }
    Ok(descriptor)
}

fn stream() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

/// Removes what stands at `path` if it is a socket on which nobody answers.
fn remove_stale(path: &Path, address: &UnixAddr) -> Result<(), SocketError> {
    let system = |what| move |source| SocketError::System { path: path.to_owned(), what, source };
    let metadata = std::fs::symlink_metadata(path).map_err(system("cannot be looked at"))?;
    if !metadata.file_type().is_socket() {
        return Err(SocketError::Occupied(path.to_owned()));
    }
    let probe = stream().map_err(|e| system("cannot be probed")(e.into()))?;
    match socket::connect(probe.as_raw_fd(), address) {
        Err(Errno::ECONNREFUSED) => {}
        // EAGAIN is a listener whose queue is full: busy, but alive.
        Ok(()) | Err(Errno::EAGAIN) => return Err(SocketError::Live(path.to_owned())),
        Err(errno) => return Err(system("cannot be probed")(errno.into())),
    }
    tracing::info!(path = %path.display(), "removing the socket that an earlier process left behind");
    std::fs::remove_file(path).map_err(system("cannot be removed"))
}

fn lock_directory(path: &Path) -> Result<Flock<File>, SocketError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let system = |what| move |source| SocketError::System { path: directory.to_owned(), what, source };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(system("cannot be made"))?;
    let file = File::open(directory).map_err(system("cannot be opened"))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => SocketError::Starting(path.to_owned()),
        errno => system("cannot be locked")(errno.into()),
    })
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The next driver may have bound its own socket here by now. (Two quick calls at the end of
        // the driver's life: not worth a thread.)
        if identity(&self.path).is_ok_and(|found| found == self.identity)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net as std_net;

    fn endpoint(dir: &tempfile::TempDir) -> Endpoint {
        dir.path().join("csi.sock").to_str().unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn the_socket_is_private_and_goes_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint: Endpoint = dir.path().join("new/dir/csi.sock").to_str().unwrap().parse().unwrap();
        let socket = Socket::bind(&endpoint).unwrap();
        assert_eq!(std::fs::metadata(endpoint.path()).unwrap().mode() & 0o777, 0o600);
        std_net::UnixStream::connect(endpoint.path()).unwrap();
        drop(socket);
        assert!(!endpoint.path().exists());
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = endpoint(&dir);
        drop(std_net::UnixListener::bind(endpoint.path()).unwrap());
        assert!(endpoint.path().exists(), "std leaves the file behind");
        let _socket = Socket::bind(&endpoint).unwrap();
        std_net::UnixStream::connect(endpoint.path()).unwrap();
    }

    #[tokio::test]
    async fn a_live_socket_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = endpoint(&dir);
        let _live = Socket::bind(&endpoint).unwrap();
        let error = Socket::bind(&endpoint).unwrap_err();
        assert!(matches!(error, SocketError::Live(_)), "{error}");
        assert!(error.to_string().contains(endpoint.path().to_str().unwrap()));
        std_net::UnixStream::connect(endpoint.path()).unwrap();
    }

    #[tokio::test]
    async fn anything_but_a_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = endpoint(&dir);
        std::fs::write(endpoint.path(), "precious").unwrap();
        assert!(matches!(Socket::bind(&endpoint), Err(SocketError::Occupied(_))));
        assert_eq!(std::fs::read_to_string(endpoint.path()).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_successors_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = endpoint(&dir);
        let old = Socket::bind(&endpoint).unwrap();
        std::fs::remove_file(endpoint.path()).unwrap();
        let _new = Socket::bind(&endpoint).unwrap();
        drop(old);
        assert!(endpoint.path().exists());
    }

    #[tokio::test]
    async fn two_that_start_at_once_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = endpoint(&dir);
        let _other = lock_directory(endpoint.path()).unwrap();
        assert!(matches!(Socket::bind(&endpoint), Err(SocketError::Starting(_))));
    }
}

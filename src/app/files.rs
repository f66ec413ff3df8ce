use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the number of files that this process may have open as far as it may itself: every link is one. Container
/// runtimes start programs with 1024, for those that use select(2), and leave it to all others to ask for more
/// (containerd 2 and later; systemd's `DefaultLimitNOFILE=`). Gives back how many it may have now.
pub(super) fn raise() -> nix::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

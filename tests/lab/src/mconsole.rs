//! The control socket of a user-mode Linux kernel, called mconsole: one datagram asks, one or more answer.

use std::fs;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::Error;

const MAGIC: u32 = 0xcafe_babe;
const VERSION: u32 = 2;
/// The length of the text in a request and in an answer; both are always sent whole.
const TEXT: usize = 512;
/// Error, "more follows", length: 32 bits each.
const HEADER: usize = 12;

/// How long a kernel may take to answer; a healthy one does at once, but its host may be busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends one command, and returns the kernel's answer.
///
/// # Errors
///
/// [`Error::Io`] when the kernel is not there, refuses the command, or does not answer within 5 seconds.
pub(crate) fn ask(socket: &Path, command: &str) -> Result<String, Error> {
    exchange(socket, command).map_err(Error::io(format!("tell the guest's kernel {command:?}")))
}

/// Whether the kernel still does what it is asked to.
pub(crate) fn is_alive(socket: &Path) -> bool {
    // To read a file it has to switch between tasks, which one that only serves interrupts no longer does.
    exchange(socket, "proc uptime").is_ok()
}

fn exchange(socket: &Path, command: &str) -> io::Result<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // The kernel answers to the sender's address, so the sender needs one of its own.
    let own = socket.with_file_name(format!("ask{}", COUNT.fetch_add(1, Ordering::Relaxed)));
    let channel = UnixDatagram::bind(&own)?;
    let answer = channel
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| channel.send_to(&request(command)?, socket))
        .and_then(|_| receive(&channel));
    fs::remove_file(&own)?;
    answer
}

fn request(command: &str) -> io::Result<Vec<u8>> {
    let length = u32::try_from(command.len()).map_err(io::Error::other)?;
    if command.len() >= TEXT {
        return Err(io::Error::other("the command is too long"));
    }
    let mut bytes: Vec<u8> = [MAGIC, VERSION, length].into_iter().flat_map(u32::to_ne_bytes).collect();
    bytes.extend_from_slice(command.as_bytes());
    bytes.resize(HEADER + TEXT, 0);
    Ok(bytes)
}

fn receive(channel: &UnixDatagram) -> io::Result<String> {
    let mut text = String::new();
    loop {
        let mut answer = [0; HEADER + TEXT];
        let received = channel.recv(&mut answer)?;
        let failed = word(&answer, 0) != 0;
        let more = word(&answer, 4) != 0;
        let length = usize::try_from(word(&answer, 8)).map_err(io::Error::other)?;
        let end = received.min(HEADER.saturating_add(length));
        text.push_str(
            String::from_utf8_lossy(answer.get(HEADER..end).unwrap_or_default()).trim_end_matches('\0'),
        );
        match (more, failed) {
            (true, _) => {}
            (false, true) => return Err(io::Error::other(text)),
            (false, false) => return Ok(text),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

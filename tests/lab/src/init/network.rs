//! The loopback interface, brought up by hand: a program for it would take 50 ms to start.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST_AND_ACK: u16 = 1 | 4;
const IFF_UP: u32 = 1;
/// The loopback interface is always the first one.
const LOOPBACK: u32 = 1;
const LENGTH: u32 = 32;
/// Where the answer's error number is: after its header of 16 bytes.
const ERROR: std::ops::Range<usize> = 16..20;

/// Sets the interface up, and waits for the kernel's word that it is.
pub(super) fn bring_up_loopback() -> io::Result<()> {
    let channel =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    sendto(channel.as_raw_fd(), &request(), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = [0; 4096];
    let length = recv(channel.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    match answer.get(..length).and_then(|answer| answer.get(ERROR)?.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("the kernel's answer is too short")),
    }
}

/// A `struct nlmsghdr` and a `struct ifinfomsg`; see rtnetlink(7).
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(RTM_NEWLINK.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST_AND_ACK.to_ne_bytes());
    // Sequence number and port, family, padding and type.
    bytes.extend([0; 8 + 4]);
    bytes.extend(LOOPBACK.to_ne_bytes());
    // The new flags, and which of them to change.
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes
}

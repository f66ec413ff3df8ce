use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Every address of IPv4 where every one of IPv6 is asked for and the machine has no IPv6.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let every = address.is_ipv6() && address.ip().is_unspecified();
    match every && UdpSocket::bind((address.ip(), 0)).is_err() {
        true => (Ipv4Addr::UNSPECIFIED, address.port()).into(),
        false => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_can_be_listened_at() {
        let every: SocketAddr = "[::]:0".parse().unwrap();
        assert!(std::net::TcpListener::bind(reachable(every)).is_ok());
        let one: SocketAddr = "127.0.0.1:7".parse().unwrap();
        assert_eq!(reachable(one), one);
    }
}

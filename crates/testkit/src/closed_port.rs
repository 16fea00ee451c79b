//! An address where nobody listens.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port of the loopback address that refuses all connections. It is bound while this lives: otherwise another test
/// could get the port and listen there.
#[derive(Debug)]
pub struct ClosedPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl ClosedPort {
    /// Binds a port without listening on it.
    pub fn bind() -> std::io::Result<ClosedPort> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(ClosedPort { address: socket.local_addr()?, _socket: socket })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

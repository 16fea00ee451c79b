use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::connection;
use crate::world::World;

/// A world on a TCP socket: HTTP/1.1 with keep-alive, with all sites at one address, told apart by the Host header. The
/// world's time starts with the server.
///
/// Dropping it stops it at once.
pub struct Server {
    addr: SocketAddr,
    started: Instant,
    world: Arc<World>,
    stopping: watch::Sender<()>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts listening and serving; port 0 takes any free port. Must be called within a tokio runtime.
    pub fn start(world: Arc<World>, listen: SocketAddr) -> io::Result<Server> {
        Server::start_with(listening_socket(listen)?, world)
    }

    /// Listens on every address of the loopback device: `127.0.0.1`, `127.1.2.3` and so on can be used as hosts without
    /// a name server. Other machines cannot connect.
    pub fn start_on_loopback(world: Arc<World>, port: u16) -> io::Result<Server> {
        let socket = listening_socket((Ipv4Addr::UNSPECIFIED, port).into())?;
        socket.bind_device(Some(LOOPBACK_DEVICE))?;
        Server::start_with(socket, world)
    }

    fn start_with(socket: TcpSocket, world: Arc<World>) -> io::Result<Server> {
        let listener = socket.listen(BACKLOG)?;
        let addr = listener.local_addr()?;
        let started = Instant::now();
        let (stopping, stop) = watch::channel(());
        let accepting = tokio::spawn(accept_all(listener, Arc::clone(&world), started, stop));
        Ok(Server { addr, started, world, stopping, accepting })
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The start of the time that hits are recorded in.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The world that it serves.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Accepts no more connections, lets responses in progress finish for up to a second, and stops.
    pub async fn stop(mut self) {
        self.stopping.send_replace(());
        // Only a panic can make this fail, and then the task has ended, too.
        (&mut self.accepting).await.ok();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Enough for a burst of thousands of clients; the kernel may reduce it (net.core.somaxconn).
const BACKLOG: u32 = 8_192;

/// How long to wait after accepting failed, which is nearly always due to a lack of file descriptors.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(10);

const LOOPBACK_DEVICE: &[u8] = b"lo";

fn listening_socket(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that was killed must be able to restart on the same port.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

async fn accept_all(
    listener: TcpListener,
    world: Arc<World>,
    started: Instant,
    mut stop: watch::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let world = Arc::clone(&world);
                    connections.spawn(connection::serve(stream, world, started, stop.clone()));
                }
                Err(_) => sleep(ACCEPT_AGAIN_AFTER).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stop.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

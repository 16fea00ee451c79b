//! Accepts connections and moves their bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::faults::Cut;
use super::pump::pump;
use super::{Control, Port};

/// The number of connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// A socket that reserves its port. Until it listens, the kernel refuses connections.
pub(super) fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Listens while it should, and keeps the port reserved while it should not.
pub(super) async fn listen(socket: TcpSocket, address: SocketAddr, control: Arc<Control>) {
    // This only ends with an error; tasks that wait for the port must be told.
    drop(open_and_close(socket, address, &control).await);
    control.port.send_replace(Port::Lost);
}

async fn open_and_close(
    mut socket: TcpSocket,
    address: SocketAddr,
    control: &Arc<Control>,
) -> io::Result<()> {
    let mut accepts = control.accepts.subscribe();
    // They end with this task.
    let mut connections = JoinSet::new();
    loop {
        // The sender is in `control`, so waiting cannot fail.
        drop(accepts.wait_for(|accepts| *accepts).await);
        let listener = socket.listen(BACKLOG)?;
        control.port.send_replace(Port::Open);
        tokio::select! {
            ended = accept(&listener, control, &mut connections) => return ended,
            _ = accepts.wait_for(|accepts| !*accepts) => {}
        }
        drop(listener);
        socket = bound(address)?;
        control.port.send_replace(Port::Closed);
    }
}

async fn accept(
    listener: &TcpListener,
    control: &Arc<Control>,
    connections: &mut JoinSet<()>,
) -> io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        control.accepted.send_modify(|count| *count += 1);
        while connections.try_join_next().is_some() {}
        connections.spawn(connect(client, control.clone()));
    }
}

/// Moves bytes in both directions until both have ended, or the connection is cut.
async fn connect(mut client: TcpStream, control: Arc<Control>) {
    let mut cuts = control.cuts.subscribe();
    #[expect(clippy::disallowed_methods, reason = "it connects to a server of the test")]
    let Ok(mut server) = TcpStream::connect(control.upstream).await else {
        return reset([&client]);
    };
    for stream in [&client, &server] {
        // Without it, small pieces would be delayed unintentionally.
        drop(stream.set_nodelay(true));
    }
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let moving = async {
            tokio::try_join!(
                pump(from_client, to_server, control.up.subscribe()),
                pump(from_server, to_client, control.down.subscribe()),
            )
        };
        tokio::select! {
            ended = moving => ended.map(|_| ()),
            cut = cuts.recv() => Err(cut.unwrap_or(Cut::Reset)),
        }
    };
    if ended == Err(Cut::Reset) {
        reset([&client, &server]);
    }
}

/// Makes the next close of these streams send an RST.
fn reset<const N: usize>(streams: [&TcpStream; N]) {
    for stream in streams {
        // It fails only for a connection that has already ended.
        drop(stream.set_zero_linger());
    }
}

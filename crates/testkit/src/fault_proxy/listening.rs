//! Lets connections in, and moves their bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::faults::Cut;
use super::pump::pump;
use super::{Control, Port};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// A socket that holds its port. Until it listens, the kernel refuses whoever connects to it.
pub(super) fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Listens while it is to, and holds the port while it is not.
pub(super) async fn listen(socket: TcpSocket, address: SocketAddr, control: Arc<Control>) {
    // It only ever ends with an error; whoever waits for the port must hear of it.
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
        // The sender is in `control`, so the wait can't fail.
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

/// Moves bytes both ways until both have ended, or the connection is cut.
async fn connect(mut client: TcpStream, control: Arc<Control>) {
    let mut cuts = control.cuts.subscribe();
    #[expect(clippy::disallowed_methods, reason = "a test's way to the test's own servers")]
    let Ok(mut server) = TcpStream::connect(control.upstream).await else {
        return reset([&client]);
    };
    for stream in [&client, &server] {
        // Without it small pieces would be late, which nobody asked for.
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

/// What is closed next is closed with an RST.
fn reset<const N: usize>(streams: [&TcpStream; N]) {
    for stream in streams {
        // One that has ended already needs none.
        drop(stream.set_zero_linger());
    }
}

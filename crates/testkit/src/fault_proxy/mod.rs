//! A TCP proxy that can be told to misbehave, while it runs.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use fetchwell_testkit::fault_proxy::{Cut, FaultProxy, Faults};
//! # async fn example() -> std::io::Result<()> {
//! let proxy = FaultProxy::start("127.0.0.1:6379".parse().unwrap()).await?;
//! let redis = format!("redis://{}", proxy.address()); // For whoever is under test.
//! proxy.down(Faults::delay(Duration::from_millis(200)));
//! proxy.both(Faults::stall());
//! proxy.heal();
//! proxy.cut(Cut::Reset);
//! proxy.refuse().await?;
//! proxy.accept().await?;
//! # Ok(())
//! # }
//! ```

mod faults;
mod listening;
mod pump;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::{broadcast, watch};
use tokio_util::task::AbortOnDropHandle;

pub use faults::{Cut, Faults};

/// Stands between a client and an upstream server. It ends with all its connections when it is
/// dropped.
pub struct FaultProxy {
    address: SocketAddr,
    control: Arc<Control>,
    _listening: AbortOnDropHandle<()>,
}

/// What the proxy and its connections have in common.
struct Control {
    upstream: SocketAddr,
    up: watch::Sender<Faults>,
    down: watch::Sender<Faults>,
    cuts: broadcast::Sender<Cut>,
    /// Whether connections are to be accepted…
    accepts: watch::Sender<bool>,
    /// …and whether they are.
    port: watch::Sender<Port>,
    accepted: watch::Sender<usize>,
}

/// What has become of the port that clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Open,
    Closed,
    /// It could not be had again.
    Lost,
}

impl FaultProxy {
    /// Listens on a free port of the loopback, and does nothing wrong. Call it within a tokio runtime.
    pub async fn start(upstream: SocketAddr) -> io::Result<FaultProxy> {
        let socket = listening::bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        let control = Arc::new(Control {
            upstream,
            up: watch::Sender::default(),
            down: watch::Sender::default(),
            cuts: broadcast::Sender::new(16),
            accepts: watch::Sender::new(true),
            port: watch::Sender::new(Port::Closed),
            accepted: watch::Sender::new(0),
        });
        let listening = tokio::spawn(listening::listen(socket, address, control.clone()));
        let proxy = FaultProxy { address, control, _listening: AbortOnDropHandle::new(listening) };
        proxy.accept().await?;
        Ok(proxy)
    }

    /// Where clients are to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What goes wrong from the client to the server, from now on.
    pub fn up(&self, faults: Faults) {
        self.control.up.send_replace(faults);
    }

    /// What goes wrong from the server to the client, from now on.
    pub fn down(&self, faults: Faults) {
        self.control.down.send_replace(faults);
    }

    /// What goes wrong both ways, from now on.
    pub fn both(&self, faults: Faults) {
        self.up(faults);
        self.down(faults);
    }

    /// Nothing goes wrong any more. What a stall held back goes on.
    pub fn heal(&self) {
        self.both(Faults::default());
    }

    /// Cuts all connections that there are.
    pub fn cut(&self, cut: Cut) {
        // Where there are none, nobody listens.
        drop(self.control.cuts.send(cut));
    }

    /// Lets nobody in any more: the port is closed. Connections that there are go on.
    pub async fn refuse(&self) -> io::Result<()> {
        self.be_open(false).await
    }

    /// Lets clients in again.
    pub async fn accept(&self) -> io::Result<()> {
        self.be_open(true).await
    }

    /// How many connections came so far.
    pub fn accepted(&self) -> usize {
        *self.control.accepted.borrow()
    }

    /// Waits for a connection beyond the first so many.
    pub async fn accepted_more_than(&self, so_many: usize) {
        let mut accepted = self.control.accepted.subscribe();
        // It can't fail: the sender is ours.
        drop(accepted.wait_for(|count| *count > so_many).await);
    }

    async fn be_open(&self, wanted: bool) -> io::Result<()> {
        self.control.accepts.send_replace(wanted);
        let wanted = if wanted { Port::Open } else { Port::Closed };
        let mut port = self.control.port.subscribe();
        // It can't fail: the sender is ours.
        drop(port.wait_for(|port| *port == wanted || *port == Port::Lost).await);
        if *port.borrow() == Port::Lost {
            return Err(io::Error::other(format!("{} was lost to somebody else", self.address)));
        }
        Ok(())
    }
}

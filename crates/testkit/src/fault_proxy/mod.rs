//! A TCP proxy whose faults can be changed while it runs.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use fetchwell_testkit::fault_proxy::{Cut, FaultProxy, Faults};
//! # async fn example() -> std::io::Result<()> {
//! let proxy = FaultProxy::start("127.0.0.1:6379".parse().unwrap()).await?;
//! let redis = format!("redis://{}", proxy.address()); // For the program under test.
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

/// A proxy between a client and an upstream server. Dropping it closes it and all its connections.
pub struct FaultProxy {
    address: SocketAddr,
    control: Arc<Control>,
    _listening: AbortOnDropHandle<()>,
}

/// Shared by the proxy and its connections.
struct Control {
    upstream: SocketAddr,
    up: watch::Sender<Faults>,
    down: watch::Sender<Faults>,
    cuts: broadcast::Sender<Cut>,
    /// Whether connections should be accepted…
    accepts: watch::Sender<bool>,
    /// …and whether they are.
    port: watch::Sender<Port>,
    accepted: watch::Sender<usize>,
}

/// The state of the port that clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Open,
    Closed,
    /// It could not be bound again.
    Lost,
}

impl FaultProxy {
    /// Listens on a free loopback port, without faults. Call it within a tokio runtime.
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

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the faults from the client to the server.
    pub fn up(&self, faults: Faults) {
        self.control.up.send_replace(faults);
    }

    /// Sets the faults from the server to the client.
    pub fn down(&self, faults: Faults) {
        self.control.down.send_replace(faults);
    }

    /// Sets the faults in both directions.
    pub fn both(&self, faults: Faults) {
        self.up(faults);
        self.down(faults);
    }

    /// Removes all faults. Bytes that a stall held back continue.
    pub fn heal(&self) {
        self.both(Faults::default());
    }

    /// Cuts all existing connections.
    pub fn cut(&self, cut: Cut) {
        // Without connections there are no receivers.
        drop(self.control.cuts.send(cut));
    }

    /// Closes the port, so that new connections are refused. Existing ones continue.
    pub async fn refuse(&self) -> io::Result<()> {
        self.be_open(false).await
    }

    /// Accepts connections again.
    pub async fn accept(&self) -> io::Result<()> {
        self.be_open(true).await
    }

    /// The number of connections so far.
    pub fn accepted(&self) -> usize {
        *self.control.accepted.borrow()
    }

    /// Waits until there have been more than `so_many` connections.
    pub async fn accepted_more_than(&self, so_many: usize) {
        let mut accepted = self.control.accepted.subscribe();
        // It cannot fail: we own the sender.
        drop(accepted.wait_for(|count| *count > so_many).await);
    }

    async fn be_open(&self, wanted: bool) -> io::Result<()> {
        self.control.accepts.send_replace(wanted);
        let wanted = if wanted { Port::Open } else { Port::Closed };
        let mut port = self.control.port.subscribe();
        // It cannot fail: we own the sender.
        drop(port.wait_for(|port| *port == wanted || *port == Port::Lost).await);
        if *port.borrow() == Port::Lost {
            return Err(io::Error::other(format!("{} was lost to somebody else", self.address)));
        }
        Ok(())
    }
}

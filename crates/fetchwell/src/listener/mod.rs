//! Every listener of ours: the API of `serve`, dashboards, and the metrics of commands without an API.
//!
//! | file | |
//! |---|---|
//! | `connection` | one connection: its requests, its time limits, its end |
//! | `places` | how many connections there may be: in all, from one address, and for health checks |
//! | `proxies` | whose request it is: the other end of the connection, or whoever a trusted proxy names |
//! | `request` | what every request must have, and every answer gets |
//! | `held_body` | what is held until an answer is sent |
//! | `usage` | whether a connection is idle |
//!
//! Nothing here knows who the caller is. So these limits are what a stranger meets before any authentication.

mod connection;
mod held_body;
mod places;
mod proxies;
mod request;
mod usage;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use crate::descriptors::Descriptors;
use crate::settings::Values;
use connection::{Connection, Shared};
use places::{Places, Refusal};
use proxies::TrustedProxies;

pub(crate) use held_body::until_sent;
pub(crate) use proxies::{Peer, network_name, network_of};

/// After a failure to accept (no file descriptor is left), the next try waits.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A stranger can cause warnings, so each kind is logged at most once in this time.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// On a listener with few users one address gets this share of the connections at most.
const SHARE_OF_ONE_ADDRESS: usize = 4;

/// Bounds of a listener.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    /// Connections at once. Besides them there are a few that only health checks get.
    most: usize,
    /// Connections of one address at once.
    per_address: usize,
    trusted_proxies: Vec<IpNet>,
    /// How long requests under way may go on after the signal to stop.
    grace: Duration,
}

impl Connections {
    /// The bounds that the settings name, for a listener with so many connections.
    pub(crate) fn new(values: &Values, most: usize, grace: Duration) -> Connections {
        Connections {
            most,
            per_address: values.api_max_connections_per_address,
            trusted_proxies: values.api_trusted_proxies.clone(),
            grace,
        }
    }

    /// The same for a listener that few people or programs use: none of them can have all of it.
    pub(crate) fn few(values: &Values, most: usize, grace: Duration) -> Connections {
        let bounds = Connections::new(values, most, grace);
        let share = (most / SHARE_OF_ONE_ADDRESS).max(1);
        Connections { per_address: bounds.per_address.min(share), ..bounds }
    }
}

/// Serves until `stop`, then lets requests under way end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Connections,
    stop: CancellationToken,
) {
    let most = Descriptors::of_this_process().fit_listener(bounds.most);
    let places = Arc::new(Places::new(most, bounds.per_address));
    let proxies = TrustedProxies::new(bounds.trusted_proxies.clone());
    let shared = Arc::new(Shared::new(router, places.clone(), proxies));
    let connections = TaskTracker::new();
    let mut warnings = Warnings::default();
    while let Some((stream, peer)) = next(&listener, &places, &mut warnings, &stop).await {
        let connection = Connection::new(shared.clone(), peer.ip());
        if let Some(refusal) = connection.refusal() {
            warnings.refused(refusal, peer, &bounds);
        }
        connections.spawn(connection.run(stream, stop.clone()));
    }
    connections.close();
    if tokio::time::timeout(bounds.grace, connections.wait()).await.is_err() {
        warn!("{} connections were cut off at the end of the grace", connections.len());
    }
}

/// The next connection; `None`: the end.
async fn next(
    listener: &TcpListener,
    places: &Places,
    warnings: &mut Warnings,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr)> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    warnings.not_accepted(&error);
                    // Most likely there is no descriptor left; an idle connection has one.
                    places.close_one();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        accepted = accept => Some(accepted),
        () = stop.cancelled() => None,
    }
}

/// When something was last warned about.
#[derive(Default)]
struct Warnings {
    not_accepted: Option<Instant>,
    refused: Option<Instant>,
}

impl Warnings {
    fn not_accepted(&mut self, error: &io::Error) {
        if is_due(&mut self.not_accepted) {
            warn!("a connection could not be accepted: {error}; idle connections are closed");
        }
    }

    fn refused(&mut self, refusal: Refusal, peer: SocketAddr, bounds: &Connections) {
        if !is_due(&mut self.refused) {
            return;
        }
        let Connections { most, per_address, .. } = bounds;
        match refusal {
            Refusal::Full => warn!(
                "all {most} connections of this listener are in use: more are refused with 503, health \
                 checks excepted"
            ),
            Refusal::Address => warn!(
                "{} has {per_address} connections in use: more are refused with 429, health checks \
                 excepted. If it is a proxy, name it in api.trusted_proxies; else see \
                 api.max_connections_per_address",
                peer.ip()
            ),
        }
    }
}

fn is_due(last: &mut Option<Instant>) -> bool {
    let is_due = last.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

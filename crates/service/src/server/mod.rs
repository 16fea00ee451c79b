//! The HTTP server behind every listener: the API of `serve`, dashboards, and the metrics of commands without an API.
//!
//! | file | |
//! |---|---|
//! | `connection` | one connection: its requests, its timeouts and its end |
//! | `places` | the limits on connections: in total, per address, and for health checks |
//! | `proxies` | the client's address: the other end of the connection, or the one that a trusted proxy names |
//! | `request` | checks on every request, and headers of every response |
//! | `held_body` | holds a value until a response is sent |
//! | `chunks` | splits an HTTP/2 response into small chunks, so that it keeps its place until it is read |
//! | `usage` | tracks whether a connection is idle or unread |
//!
//! All of this happens before authentication, so the limits apply to unknown clients.

mod chunks;
mod connection;
mod held_body;
mod places;
mod proxies;
mod request;
mod usage;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use fetchwell_engine::descriptors::{Descriptors, Incoming};
use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use connection::{Connection, Shared};
use places::{Limits, Places, Refusal};
use proxies::TrustedProxies;

pub(crate) use held_body::until_sent;
pub(crate) use proxies::{Peer, network_name, network_of};

/// The pause after a failed accept, for example because no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Any client can cause warnings, so each kind is logged at most once in this time.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// On a listener with few users one address gets at most 1/`SHARE_OF_ONE_ADDRESS` of the connections.
const SHARE_OF_ONE_ADDRESS: usize = 4;

/// A process has at most two such listeners, for metrics and for a dashboard. They share its file descriptors.
const LISTENERS_WITH_FEW_USERS: usize = 2;

/// The limits for all listeners of a process.
#[derive(Clone, Debug)]
pub struct ConnectionRules {
    /// Connections of one address at once.
    pub per_address: usize,
    /// Proxies whose `Forwarded` and `X-Forwarded-…` headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
}

/// The limits of a listener.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// The maximum number of connections, not counting a few that are reserved for health checks.
    most: usize,
    rules: ConnectionRules,
    /// Used by few clients, so no single one may take all connections.
    few_users: bool,
    /// How long requests in progress may continue after the signal to stop.
    grace: Duration,
}

impl ConnectionLimits {
    /// The limits of the only listener of a process.
    pub fn new(rules: ConnectionRules, most: usize, grace: Duration) -> ConnectionLimits {
        ConnectionLimits { most, rules, few_users: false, grace }
    }

    /// The limits of a listener for metrics or a dashboard.
    pub fn few(rules: ConnectionRules, most: usize, grace: Duration) -> ConnectionLimits {
        ConnectionLimits { few_users: true, ..ConnectionLimits::new(rules, most, grace) }
    }

    /// Reduces the limits to what the file descriptors allow.
    fn fit(&self, descriptors: Descriptors) -> Limits {
        let listeners = if self.few_users { LISTENERS_WITH_FEW_USERS } else { 1 };
        let Incoming { most, health_checks } = descriptors.fit_listener(self.most, listeners);
        let share = (most / SHARE_OF_ONE_ADDRESS).max(1);
        let per_address = self.rules.per_address;
        let per_address = if self.few_users { per_address.min(share) } else { per_address };
        Limits { most, per_address, health_checks }
    }
}

/// Serves until `stop`, then lets requests in progress finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: ConnectionLimits,
    stop: CancellationToken,
) {
    let limits = bounds.fit(Descriptors::of_this_process());
    let places = Arc::new(Places::new(limits));
    let proxies = TrustedProxies::new(bounds.rules.trusted_proxies.clone());
    let shared = Arc::new(Shared::new(router, places.clone(), proxies));
    let connections = TaskTracker::new();
    // When each of the two warnings was last logged.
    let mut not_accepted = None;
    let mut refused = None;
    while let Some((stream, peer)) = next(&listener, &places, &mut not_accepted, &stop).await {
        let connection = Connection::new(shared.clone(), peer.ip());
        if let Some(refusal) = connection.refusal()
            && is_due(&mut refused)
        {
            warn!("{}", refusal_text(refusal, peer.ip(), limits, &bounds));
        }
        connections.spawn(connection.run(stream, stop.clone()));
    }
    connections.close();
    if tokio::time::timeout(bounds.grace, connections.wait()).await.is_err() {
        warn!("{} connections were closed at the end of shutdown_grace", connections.len());
    }
}

/// The next connection; `None` after `stop`. `warned` is the time of the last warning.
async fn next(
    listener: &TcpListener,
    places: &Places,
    warned: &mut Option<Instant>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr)> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    if is_due(warned) {
                        warn!(
                            "a connection could not be accepted: {error}; idle connections are closed"
                        );
                    }
                    // Most likely no file descriptor is left; closing an idle connection frees one.
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

/// Names the setting that raises the limit, if a setting caused it.
fn refusal_text(
    refusal: Refusal,
    from: IpAddr,
    limits: Limits,
    bounds: &ConnectionLimits,
) -> String {
    let Limits { most, per_address, .. } = limits;
    match refusal {
        Refusal::Full => format!(
            "all {most} connections of this listener are in use: new requests get 503, except health checks"
        ),
        Refusal::Address => {
            let or_raise = if per_address < bounds.rules.per_address {
                ""
            } else {
                "; otherwise you can raise api.max_connections_per_address"
            };
            format!(
                "{from} has {per_address} connections in use, the limit for one address: new requests get 429, \
                 except health checks. If it is a proxy, add it to api.trusted_proxies{or_raise}"
            )
        }
    }
}

/// Whether a warning may be logged again, given the time of the last one.
fn is_due(last: &mut Option<Instant>) -> bool {
    let is_due = last.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(most: usize, few_users: bool) -> ConnectionLimits {
        let rules = ConnectionRules { per_address: 100, trusted_proxies: Vec::new() };
        ConnectionLimits { most, rules, few_users, grace: Duration::ZERO }
    }

    #[test]
    fn a_warning_has_the_limit_that_holds_and_the_setting_that_made_it() {
        let from = IpAddr::from([192, 0, 2, 1]);
        let text = |refusal, bounds: ConnectionLimits| {
            let limits = bounds.fit(Descriptors::with_limit(1_024));
            refusal_text(refusal, from, limits, &bounds)
        };
        let full = text(Refusal::Full, bounds(1_000, false));
        assert!(full.contains("all 192 connections"), "{full}");
        let setting = "api.max_connections_per_address";
        let address = text(Refusal::Address, bounds(1_000, false));
        assert!(address.contains("has 100 connections") && address.contains(setting), "{address}");
        let share = text(Refusal::Address, bounds(64, true));
        assert!(share.contains("has 16 connections") && !share.contains(setting), "{share}");
    }

    #[test]
    fn where_few_connections_fit_one_address_still_gets_only_its_share() {
        let limits = bounds(256, true).fit(Descriptors::with_limit(256));
        assert_eq!(limits, Limits { most: 24, per_address: 6, health_checks: 8 });
    }
}

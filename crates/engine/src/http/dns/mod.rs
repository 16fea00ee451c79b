//! Resolves names to vetted addresses.
//!
//! The client connects to exactly the addresses that were vetted, without another lookup in between. This prevents DNS
//! rebinding.

mod cache;
mod name_servers;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::address::is_public;
use fetchwell_policy::outcome::{FetchOutcome, NameFault, NetworkFault};
use fetchwell_policy::url::WebUrl;

pub(super) use self::cache::CachedNames;
pub(super) use self::name_servers::NameServers;
use super::HttpSettings;

/// Settings for name lookups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSettings {
    /// The name servers; if empty, those of the system. There is no fallback to others.
    pub servers: Vec<SocketAddr>,
    /// How long a lookup may take, including its retries.
    pub timeout: Duration,
    /// The number of lookups, a few seconds apart, that must agree before a name counts as nonexistent. Use more than 1
    /// if a nonexistent name is acted on at once.
    pub absence_lookups: u32,
}

impl Default for DnsSettings {
    fn default() -> DnsSettings {
        DnsSettings { servers: Vec::new(), timeout: Duration::from_secs(5), absence_lookups: 1 }
    }
}

/// Looks names up. The production implementation queries name servers.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of a host, which is an absolute name and never an IP address.
    async fn look_up(&self, host: &str) -> NameAnswer;
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAnswer {
    /// All addresses, or why there are none.
    pub addresses: Result<Vec<IpAddr>, NameFault>,
    /// How long the result is valid, if the answer says so.
    pub ttl: Option<Duration>,
}

/// Finds the vetted addresses of a URL's host. If one address is refused, all are.
pub(super) async fn vetted_addresses(
    url: &WebUrl,
    settings: &HttpSettings,
    names: &CachedNames,
) -> Result<Vec<SocketAddr>, FetchOutcome> {
    let rule = settings.resolve.iter().find(|rule| rule.matches(url.host()));
    let addresses = match (rule, url.host_ip()) {
        (Some(rule), _) => vec![rule.address],
        (None, Some(literal)) => vec![literal],
        (None, None) => names.addresses(url.host()).await.map_err(|fault| match fault {
            NameFault::Ours => FetchOutcome::OurFault(fault.to_string()),
            fault => FetchOutcome::Network(NetworkFault::Dns(fault)),
        })?,
    };
    let refused = |why: String| Err(FetchOutcome::Refused(why));
    if let Err(refusal) = settings.guard.check_all(&addresses) {
        return refused(refusal.to_string());
    }
    let private_only = (settings.private_only)(&url.site());
    if let Some(public) = addresses.iter().find(|ip| private_only && is_public(**ip)) {
        return refused(format!(
            "{public} is a public address and the rate is 0 (no pacing); \
             set a rate, or say --i-own-these-sites"
        ));
    }
    let port = rule.and_then(|rule| rule.port).unwrap_or(url.port());
    let addresses: Vec<_> = addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    match addresses.iter().find(|address| settings.own_listeners.covers(**address)) {
        Some(own) => refused(format!("at {own} this program itself listens; fetch another URL")),
        None => Ok(addresses),
    }
}

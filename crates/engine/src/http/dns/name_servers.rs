//! Queries the configured name servers, or those of the system, and never any other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::outcome::NameFault;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver, system_conf};

use super::{DnsSettings, NameAnswer, Resolve};
use crate::http::lack::is_lack_of_our_own;

/// The maximum number of concurrent queries on one TCP connection to a name server.
const MAX_QUERIES: usize = 1_024;

/// Uses the system's hosts file first, as other programs do, then the name servers.
pub(in crate::http) struct NameServers {
    /// `None` if no name server is known: then every lookup fails, but IP addresses still work.
    resolver: Option<TokioResolver>,
    hosts: Hosts,
}

impl NameServers {
    /// Reads the system's settings once.
    pub(in crate::http) fn new(settings: &DnsSettings) -> NameServers {
        NameServers {
            resolver: resolver(settings),
            hosts: Hosts::from_system().unwrap_or_default(),
        }
    }

    fn in_hosts_file(&self, name: &Name) -> Option<Vec<IpAddr>> {
        let of_type = |kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let found = [of_type(RecordType::A), of_type(RecordType::AAAA)];
        let addresses: Vec<_> = found.iter().flatten().flat_map(addresses).collect();
        (!addresses.is_empty()).then_some(addresses)
    }
}

#[async_trait]
impl Resolve for NameServers {
    async fn look_up(&self, host: &str) -> NameAnswer {
        let failed = |fault| NameAnswer { addresses: Err(fault), ttl: None };
        let Ok(mut name) = Name::from_ascii(host) else { return failed(NameFault::NoSuchName) };
        // The host of a URL is absolute, so no search domain is appended.
        name.set_fqdn(true);
        if let Some(addresses) = self.in_hosts_file(&name) {
            return NameAnswer { addresses: Ok(addresses), ttl: None };
        }
        let Some(resolver) = &self.resolver else { return failed(NameFault::NoServer) };
        let (four, six) = tokio::join!(
            resolver.lookup(name.clone(), RecordType::A),
            resolver.lookup(name, RecordType::AAAA)
        );
        both(answer(four), answer(six))
    }
}

fn resolver(settings: &DnsSettings) -> Option<TokioResolver> {
    let servers = if settings.servers.is_empty() {
        // Use only the servers of the system's settings. Search domains do not apply to URLs, and we have our own
        // timeouts.
        let (config, _) = system_conf::read_system_conf().ok()?;
        config.name_servers().to_vec()
    } else {
        settings.servers.iter().copied().map(name_server).collect()
    };
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    let provider = TokioRuntimeProvider::default();
    TokioResolver::builder_with_config(config, provider)
        .with_options(options(settings.timeout))
        .build()
        .ok()
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let at_its_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(at_its_port).to_vec();
    NameServerConfig::new(address.ip(), true, connections)
}

/// Two attempts fit into `timeout` with some time left, so that the addresses of one family are used even if the query
/// for the other is never answered.
fn options(timeout: Duration) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = timeout.mul_f64(0.4);
    options.attempts = 1;
    // We cache results and failures ourselves, and read the hosts file ourselves.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.max_active_requests = MAX_QUERIES;
    options
}

fn answer(found: Result<Lookup, NetError>) -> NameAnswer {
    match found {
        Ok(lookup) => {
            let ttl_secs = lookup.answers().iter().map(|record| record.ttl).min();
            let addresses = Ok(addresses(&lookup).collect());
            NameAnswer { addresses, ttl: ttl_secs.map(|secs| Duration::from_secs(secs.into())) }
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => {
            let exists = none.response_code != ResponseCode::NXDomain;
            let fault = if exists { NameFault::NoAddress } else { NameFault::NoSuchName };
            let ttl = none.negative_ttl.map(|secs| Duration::from_secs(secs.into()));
            NameAnswer { addresses: Err(fault), ttl }
        }
        Err(error) => NameAnswer { addresses: Err(fault(&error)), ttl: None },
    }
}

/// Every address in the answer, whatever name it belongs to: all are vetted.
fn addresses(lookup: &Lookup) -> impl Iterator<Item = IpAddr> {
    lookup.answers().iter().filter_map(|record| record.data.ip_addr())
}

fn fault(error: &NetError) -> NameFault {
    match error {
        NetError::Dns(_) => NameFault::ServerFailed,
        NetError::Timeout | NetError::Busy => NameFault::TimedOut,
        NetError::Io(error) if is_lack_of_our_own(error) => NameFault::Ours,
        NetError::Io(_) | NetError::NoConnections => NameFault::NoServer,
        _ => NameFault::Nonsense,
    }
}

/// Combines the answers of both families. A failure counts only if the other family has no address either.
fn both(four: NameAnswer, six: NameAnswer) -> NameAnswer {
    let ttl = four.ttl.into_iter().chain(six.ttl).min();
    match (four.addresses, six.addresses) {
        (Ok(four), Ok(six)) => NameAnswer { addresses: Ok(in_turn(&four, &six)), ttl },
        (Ok(found), Err(_)) => NameAnswer { addresses: Ok(found), ttl: four.ttl },
        (Err(_), Ok(found)) => NameAnswer { addresses: Ok(found), ttl: six.ttl },
        (Err(one), Err(other)) => NameAnswer { addresses: Err(one.max(other)), ttl },
    }
}

/// Alternates between the families, because only the first few addresses are tried.
fn in_turn(four: &[IpAddr], six: &[IpAddr]) -> Vec<IpAddr> {
    let turn = |index| [four.get(index), six.get(index)];
    (0..four.len().max(six.len())).flat_map(turn).flatten().copied().collect()
}

//! Names to vetted addresses.

use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use fetchwell_policy::address::{AddressGuard, is_public};
use fetchwell_policy::outcome::{Happened, NetworkFault};
use fetchwell_policy::url::WebUrl;
use hickory_resolver::TokioResolver;

/// Sends names to a fixed address: `*.test=127.0.0.1:8099`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveRule {
    /// A name, or `*.` and a suffix.
    pub pattern: String,
    /// Where to.
    pub address: IpAddr,
    /// Another port than the URL's.
    pub port: Option<u16>,
}

impl ResolveRule {
    /// Whether the rule is for this host.
    pub fn matches(&self, host: &str) -> bool {
        match self.pattern.strip_prefix('*') {
            Some("") => true,
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => self.pattern == host,
        }
    }
}

/// Looks names up. The real one asks the system's name servers.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of a name.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String>;
}

/// The system's name servers, with a cache.
pub(super) struct SystemResolver(Option<TokioResolver>);

impl SystemResolver {
    /// Without a resolver configuration every name is unknown, and literals still work.
    pub(super) fn new() -> SystemResolver {
        let built =
            TokioResolver::builder_tokio().and_then(hickory_resolver::ResolverBuilder::build);
        SystemResolver(built.ok())
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let Some(resolver) = &self.0 else {
            return Err("no name servers are configured (see /etc/resolv.conf)".to_owned());
        };
        let found = resolver.lookup_ip(host).await.map_err(|error| error.to_string())?;
        Ok(found.iter().collect())
    }
}

/// Finds the vetted addresses of a URL's host. If any answer of a name is bad, all are.
pub(super) async fn vetted_addresses(
    url: &WebUrl,
    rules: &[ResolveRule],
    resolver: &dyn Resolve,
    guard: &AddressGuard,
    private_only: bool,
) -> Result<Vec<SocketAddr>, Happened> {
    let rule = rules.iter().find(|rule| rule.matches(url.host()));
    let addresses = match (rule, url.host_ip()) {
        (Some(rule), _) => vec![rule.address],
        (None, Some(literal)) => vec![literal],
        (None, None) => resolver
            .addresses(url.host())
            .await
            .map_err(|_| Happened::Network(NetworkFault::Dns))?,
    };
    if addresses.is_empty() {
        return Err(Happened::Network(NetworkFault::Dns));
    }
    guard.check_all(&addresses).map_err(|refusal| Happened::Refused(refusal.to_string()))?;
    if let Some(public) = addresses.iter().find(|ip| private_only && is_public(**ip)) {
        return Err(Happened::Refused(format!(
            "{public} is a public address and the rate is 0 (no pacing); \
             set a rate, or say --i-own-these-sites"
        )));
    }
    let port = rule.and_then(|rule| rule.port).unwrap_or(url.port());
    Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_suffixes() {
        let rule = |pattern: &str| ResolveRule {
            pattern: pattern.into(),
            address: IpAddr::from([127, 0, 0, 1]),
            port: None,
        };
        for (pattern, host, expected) in [
            ("a.test", "a.test", true),
            ("a.test", "b.a.test", false),
            ("*.test", "a.test", true),
            ("*.test", "a.b.test", true),
            ("*.test", "test", false),
            ("*.test", ".test", false),
            ("*", "anything", true),
        ] {
            assert_eq!(rule(pattern).matches(host), expected, "{pattern} {host}");
        }
    }
}

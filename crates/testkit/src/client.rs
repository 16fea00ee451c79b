//! The real HTTP client, for tests.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::http::{Client, DnsSettings, HttpLimits, HttpSettings, OwnListeners};
use fetchwell_engine::web::{Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::url::WebUrl;

/// Settings that allow only public addresses and use these name servers.
pub fn settings(name_servers: &[SocketAddr]) -> HttpSettings {
    HttpSettings {
        user_agent: "TestBot/1.0".to_owned(),
        limits: HttpLimits::default(),
        guard: AddressGuard::default(),
        resolve: Vec::new(),
        dns: DnsSettings { servers: name_servers.to_vec(), ..DnsSettings::default() },
        own_listeners: OwnListeners::default(),
        private_only: Arc::new(|_| false),
        extra_ca_file: None,
    }
}

/// A client with these settings.
///
/// # Panics
///
/// If the settings are invalid.
pub fn client(settings: HttpSettings) -> Client {
    Client::new(settings).unwrap_or_else(|error| panic!("no client: {error}"))
}

/// Requests a page without a gate, and returns the outcome.
///
/// # Panics
///
/// If the text is not a URL.
pub async fn get(client: &Client, url: &str) -> FetchOutcome {
    let url = WebUrl::parse(url).unwrap_or_else(|fault| panic!("{url}: {fault}"));
    let request = Request::page(url);
    let mut phases = Phases::default();
    match client.exchange(&request, &mut Always, &mut phases).await {
        Exchange::Answered(answer) => FetchOutcome::Answered(answer.status),
        Exchange::Failed(happened) => happened,
        Exchange::NotSent => FetchOutcome::OurFault("a kept connection was dead".to_owned()),
    }
}

/// A permit that always allows sending.
pub struct Always;

#[async_trait]
impl SendPermit for Always {
    async fn to_write(&mut self) -> bool {
        true
    }
}

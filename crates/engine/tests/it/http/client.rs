//! The client under test, and the stubs that it meets: names, and leave to write.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::http::{
    Client, DnsSettings, HttpLimits, HttpSettings, NameAnswer, OwnListeners, Resolve,
};
use fetchwell_engine::web::{Answer, Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::outcome::{FetchOutcome, NameFault};
use fetchwell_policy::url::WebUrl;

/// Whatever a test waits for comes within this time, or never.
const NEVER: Duration = Duration::from_secs(30);

/// A time limit that a test lets run out.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// Settings that let loopback addresses pass.
pub(crate) fn settings() -> HttpSettings {
    HttpSettings {
        user_agent: "Tester/1.0".to_owned(),
        limits: HttpLimits::default(),
        guard: AddressGuard::new(vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]),
        resolve: Vec::new(),
        dns: DnsSettings::default(),
        own_listeners: OwnListeners::default(),
        private_only: Arc::new(|_| false),
        extra_ca_file: None,
    }
}

pub(crate) fn client() -> Client {
    client_with(|_| {})
}

pub(crate) fn client_with(change: impl FnOnce(&mut HttpSettings)) -> Client {
    client_knowing([], change)
}

/// A client that limits answers otherwise than by default.
pub(crate) fn client_limited(change: impl FnOnce(&mut HttpLimits)) -> Client {
    client_with(|settings| change(&mut settings.limits))
}

/// A client that can resolve these names and no others.
pub(crate) fn client_knowing<const N: usize>(
    names: [(&str, &[&str]); N],
    change: impl FnOnce(&mut HttpSettings),
) -> Client {
    let mut settings = settings();
    change(&mut settings);
    let addresses = |list: &[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect();
    let names = names.map(|(name, list)| (name.to_owned(), addresses(list)));
    Client::with_resolver(settings, Box::new(Names(HashMap::from(names)))).unwrap()
}

struct Names(HashMap<String, Vec<IpAddr>>);

#[async_trait]
impl Resolve for Names {
    async fn look_up(&self, host: &str) -> NameAnswer {
        let addresses = self.0.get(host).cloned().ok_or(NameFault::NoSuchName);
        NameAnswer { addresses, ttl: None }
    }
}

/// Leave that is always given, or never; counts how often it was asked for.
pub(crate) struct Fixed {
    pub(crate) given: bool,
    pub(crate) asked: usize,
}

#[async_trait]
impl SendPermit for Fixed {
    async fn to_write(&mut self) -> bool {
        self.asked += 1;
        self.given
    }
}

/// One exchange, with leave.
pub(crate) async fn exchange(client: &Client, request: Request) -> Exchange {
    exchange_with(client, &request, &mut Fixed { given: true, asked: 0 }).await
}

/// One exchange that must not hang.
pub(crate) async fn exchange_with(
    client: &Client,
    request: &Request,
    send_permit: &mut dyn SendPermit,
) -> Exchange {
    in_time(client.exchange(request, send_permit, &mut Phases::default())).await
}

/// Something that must not take for ever.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, work).await.expect("this should have come to an end")
}

/// Fetches what must be answered.
pub(crate) async fn fetch(client: &Client, url: WebUrl) -> Answer {
    answered(exchange(client, Request::page(url)).await)
}

pub(crate) fn answered(exchange: Exchange) -> Answer {
    match exchange {
        Exchange::Answered(answer) => answer,
        other => panic!("no answer: {other:?}"),
    }
}

/// Fetches what must fail, and says how it did.
pub(crate) async fn failure(client: &Client, url: WebUrl) -> FetchOutcome {
    match exchange(client, Request::page(url)).await {
        Exchange::Failed(happened) => happened,
        other => panic!("no failure: {other:?}"),
    }
}

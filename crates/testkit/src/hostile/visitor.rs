//! A real client that visits the hostile server, one URL at a time, following redirects.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::http::{Client, HttpLimits, HttpSettings, NameAnswer, Resolve};
use fetchwell_engine::plan::redirect_chain::{RedirectChain, Stage};
use fetchwell_engine::ports::plan::Moment;
use fetchwell_engine::web::{Exchange, Outcome, Phases, Request, Web, Why};
use fetchwell_policy::address::{AddressGuard, ResolveRule};
use fetchwell_policy::outcome::{FetchOutcome, NameFault};
use fetchwell_policy::retry::{History, RetryRule};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

use super::behaviour::Good;
use super::server::{HostileServer, Target};
use crate::{DEADLINE, client};

/// Nothing here depends on time.
const MOMENT: Moment = Moment { now: Time::EPOCH, wall: Time::EPOCH, chance: 0.5 };

/// The default number of redirects.
const MAX_REDIRECTS: u32 = 5;

/// Timeouts that are short enough for a test.
pub fn short_limits() -> HttpLimits {
    HttpLimits {
        connect_timeout: Duration::from_secs(3),
        request_timeout: Duration::from_secs(10),
        idle_read_timeout: Duration::from_secs(4),
        ..long_limits()
    }
}

/// Timeouts that only a hang exceeds.
pub fn long_limits() -> HttpLimits {
    HttpLimits {
        connect_timeout: DEADLINE,
        request_timeout: DEADLINE,
        idle_read_timeout: DEADLINE,
        max_body_bytes: 2 << 20,
        body_budget_bytes: 16 << 20,
        max_idle_connections: 64,
        ..HttpLimits::default()
    }
}

pub struct HostileVisitor {
    client: Client,
}

/// The result of a visit.
#[derive(Debug)]
pub struct Visit {
    /// The final outcome.
    pub happened: FetchOutcome,
    /// The body of the response, if there is one.
    pub body: Bytes,
}

impl Visit {
    /// Whether it is one of these outcomes.
    pub fn is_one_of(&self, good: &[Good]) -> bool {
        good.iter().any(|good| good.is(&self.happened, &self.body))
    }
}

impl HostileVisitor {
    /// A visitor for this server.
    pub fn new(server: &HostileServer, limits: HttpLimits) -> anyhow::Result<HostileVisitor> {
        let resolve = server.targets().iter().map(|target| ResolveRule {
            pattern: target.host.clone(),
            address: target.address.ip(),
            port: Some(target.address.port()),
        });
        let settings = HttpSettings {
            limits,
            guard: AddressGuard::new(vec!["127.0.0.0/8".parse()?]),
            resolve: resolve.collect(),
            extra_ca_file: Some(server.ca_file().to_owned()),
            ..client::settings(&[])
        };
        Ok(HostileVisitor { client: Client::with_resolver(settings, Box::new(NoNames))? })
    }

    /// Requests the page of a target once, and follows redirects.
    pub async fn visit(&self, target: &Target) -> Visit {
        let url = WebUrl::parse(&target.url).unwrap_or_else(|fault| panic!("{fault}"));
        // One attempt: retries are not tested here.
        let mut chain =
            RedirectChain::new(url, RetryRule::ARTICLES, MAX_REDIRECTS, History::default());
        let mut request = chain.request().by(target.behaviour.method.clone());
        loop {
            let outcome = self.ask(&request).await;
            let happened = outcome.happened.clone();
            match chain.step(outcome, MOMENT) {
                Stage::Fetch(next) => request = next,
                Stage::Retry { .. } => return Visit { happened, body: Bytes::new() },
                Stage::Over(end) => {
                    let body = end.answer.map(|answer| answer.body).unwrap_or_default();
                    return Visit { happened: end.happened, body };
                }
            }
        }
    }

    async fn ask(&self, request: &Request) -> Outcome {
        let mut phases = Phases::default();
        let (happened, answer) = loop {
            match self.client.exchange(request, &mut client::Always, &mut phases).await {
                Exchange::NotSent => {} // A kept connection was dead: send it again.
                Exchange::Answered(answer) => {
                    break (FetchOutcome::Answered(answer.status), Some(answer));
                }
                Exchange::Failed(happened) => break (happened, None),
            }
        };
        Outcome { was_sent: true, answer, phases, ..Outcome::unsent(happened, Why::default()) }
    }
}

/// A resolver without names: every host has a resolve rule.
struct NoNames;

#[async_trait]
impl Resolve for NoNames {
    async fn look_up(&self, _: &str) -> NameAnswer {
        NameAnswer { addresses: Err(NameFault::NoSuchName), ttl: None }
    }
}

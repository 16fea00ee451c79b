//! A client for servers that the operator configures, such as a trace collector or a service's own health endpoint.
//! They are not sites, so neither the gate nor the address guard applies.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::outcome::FetchOutcome;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::http::{Client, ClientError, DnsSettings, HttpLimits, HttpSettings, OwnListeners};
use crate::web::{Answer, Exchange, Phases, Request, SendPermit, Web};

/// Sends requests to the operator's own servers.
pub struct OperatorClient {
    client: Client,
}

impl OperatorClient {
    /// A client with this timeout for each request.
    pub fn new(patience: Duration) -> Result<OperatorClient, ClientError> {
        let anywhere = vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
        let client = Client::new(HttpSettings {
            user_agent: concat!("Fetchwell/", env!("CARGO_PKG_VERSION")).to_owned(),
            limits: HttpLimits {
                connect_timeout: patience,
                request_timeout: patience,
                max_idle_connections: 1,
                ..HttpLimits::default()
            },
            guard: AddressGuard::new(anywhere),
            resolve: Vec::new(),
            dns: DnsSettings { timeout: patience, ..DnsSettings::default() },
            own_listeners: OwnListeners::default(),
            private_only: Arc::new(|_| false),
            extra_ca_file: None,
        })?;
        Ok(OperatorClient { client })
    }

    /// Returns a response with status 2xx, or why there is none.
    pub async fn ask(&self, request: &Request) -> Result<Answer, NoAnswer> {
        let mut phases = Phases::default();
        match self.client.exchange(request, &mut AtOnce, &mut phases).await {
            Exchange::Answered(answer) if (200..300).contains(&answer.status) => Ok(answer),
            Exchange::Answered(answer) => Err(NoAnswer::Status(answer.status)),
            Exchange::Failed(happened) => Err(NoAnswer::NotAsked(happened)),
            Exchange::NotSent => Err(NoAnswer::Dropped),
        }
    }
}

/// Why there is no successful response. The text follows the server's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It answered with this status.
    #[error("answers {0}")]
    Status(u16),
    /// The request failed.
    #[error("could not be reached: {}", reason(.0))]
    NotAsked(FetchOutcome),
    #[error("dropped its connection")]
    Dropped,
}

/// Omits the text about whose fault it was, which only makes sense for sites.
fn reason(happened: &FetchOutcome) -> String {
    match happened {
        FetchOutcome::OurFault(why) => why.clone(),
        happened => happened.to_string(),
    }
}

/// Permits a request at once, without a gate.
struct AtOnce;

#[async_trait]
impl SendPermit for AtOnce {
    async fn to_write(&mut self) -> bool {
        true
    }
}

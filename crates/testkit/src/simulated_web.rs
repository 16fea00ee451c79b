//! A simulated web in process: scripted sites on tokio's clock, without a socket.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::budget::Share;
use fetchwell_engine::web::{Answer, Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault, Phase};
use fetchwell_simweb::{Truncation, World};
use tokio::time::{Duration, Instant};

/// How long to wait for a silent server.
const SILENCE: Duration = Duration::from_secs(10);

/// Answers requests from the scripts of a world, at the time of tokio's clock.
pub struct SimulatedWeb {
    world: Arc<World>,
    started: Instant,
    user_agent: String,
}

impl SimulatedWeb {
    /// A web whose time starts now.
    pub fn new(world: Arc<World>, user_agent: &str) -> SimulatedWeb {
        SimulatedWeb { world, started: Instant::now(), user_agent: user_agent.to_owned() }
    }
}

#[async_trait]
impl Web for SimulatedWeb {
    async fn exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        if !send_permit.to_write().await {
            return Exchange::NotSent;
        }
        let site = request.url.site();
        let condition = request.headers.iter().find(|(name, _)| *name == "if-none-match");
        let if_none_match = condition.map_or("", |(_, value)| value.as_str());
        let answer = self.world.answer(
            self.started.elapsed(),
            fetchwell_simweb::SimRequest {
                host: site.as_str(),
                method: &request.method,
                path_and_query: request.url.path_and_query(),
                user_agent: &self.user_agent,
                if_none_match,
            },
        );
        let written = Instant::now();
        match answer.manner {
            Truncation::Stall => {
                tokio::time::sleep(SILENCE).await;
                return Exchange::Failed(FetchOutcome::TimedOut(Phase::Read));
            }
            Truncation::CutConnection
            | Truncation::CutAfterHead
            | Truncation::CutMidBody { .. } => {
                return Exchange::Failed(FetchOutcome::Network(NetworkFault::Reset));
            }
            Truncation::Complete => {}
        }
        tokio::time::sleep(answer.first_byte_after).await;
        phases.first_byte = written.elapsed();
        tokio::time::sleep(answer.body_over).await;
        phases.body = answer.body_over;
        let mut headers = http::HeaderMap::new();
        for (name, value) in &answer.headers {
            if let (Ok(name), Ok(value)) =
                (name.parse::<http::HeaderName>(), value.parse::<http::HeaderValue>())
            {
                headers.insert(name, value);
            }
        }
        Exchange::Answered(Answer {
            status: answer.status,
            headers,
            body: answer.body,
            share: Share::none(),
            wire: Box::default(),
        })
    }
}

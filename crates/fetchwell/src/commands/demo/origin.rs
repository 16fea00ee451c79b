//! The simulated web on its own port, and its verdict on the requests.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_simweb::{CONTROL_SITE, Control, Hit, Rule, Server, World, judge};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use super::scenario::Scenario;

/// The simulated web. It has its own threads, so that it records requests without delay.
pub(super) struct Origin {
    pub(super) server: Server,
    control: Control,
    /// The required interval between two requests to each site.
    pub(super) rule: Rule,
    runtime: Option<Runtime>,
}

/// The verdict of the sites.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Judgement {
    /// Requests received.
    pub(super) requests: usize,
    /// Gaps between two requests to a site that were checked against its pace.
    pub(super) gaps_judged: usize,
    /// Gaps that were too short.
    pub(super) too_early: usize,
    /// The tolerance: the delay of a control sender, exceeded one time in a thousand.
    pub(super) tolerance_ms: f64,
    /// Gaps that were too short even with the tolerance, and were ignored: at most one per thousand, rounded up.
    pub(super) stragglers: usize,
}

/// What a site has recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) hits: usize,
    pub(super) last_at: Duration,
    /// The status of the last response; `None` if the connection was dropped.
    pub(super) last_status: Option<u16>,
}

impl Origin {
    pub(super) fn start(scenario: &Scenario, interval: Duration) -> io::Result<Origin> {
        let world = World::new(scenario.scripts().chain([Control::site()]));
        let rule = world.rule(interval);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("origin")
            .enable_all()
            .build()?;
        let server = {
            let _within = runtime.enter();
            Server::start(Arc::new(world), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?
        };
        let control = Control::start(&server);
        Ok(Origin { server, control, rule, runtime: Some(runtime) })
    }

    /// All requests so far, except those of the control sender.
    pub(super) fn hits(&self) -> Vec<Hit> {
        let mut hits = self.server.world().hits();
        hits.retain(|hit| &*hit.site != CONTROL_SITE);
        hits
    }

    /// Checks whether requests came too early.
    pub(super) fn judge(&self, hits: &[Hit]) -> Judgement {
        let tolerance = self.control.tolerance(&self.server).unwrap_or_default();
        let verdict = judge(hits, &self.rule.clone().control(tolerance));
        Judgement {
            requests: hits.len(),
            gaps_judged: verdict.gaps_judged,
            too_early: verdict.violations.len(),
            tolerance_ms: (tolerance.as_secs_f64() * 1e4).round() / 10.0,
            stragglers: verdict.stragglers,
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // A runtime cannot wait for its threads inside another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What each site has recorded.
pub(super) fn by_site(hits: &[Hit]) -> HashMap<&str, Seen> {
    let mut sites: HashMap<&str, Seen> = HashMap::new();
    for hit in hits {
        let seen = sites.entry(&hit.site).or_default();
        seen.hits += 1;
        (seen.last_at, seen.last_status) = (hit.at, hit.status);
    }
    sites
}

/// A status for display; a dropped connection has none.
pub(super) fn status_word(status: Option<u16>) -> String {
    status.map_or_else(|| "cut".to_owned(), |status| status.to_string())
}

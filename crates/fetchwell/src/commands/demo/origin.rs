//! The simulated web on a port of its own, and its judgement of who came.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_simweb::{CONTROL_SITE, Control, Hit, Rule, Server, World, judge};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use super::scenario::Scenario;

/// The web. It has threads of its own, so that it sees who comes when they come.
pub(super) struct Origin {
    server: Server,
    control: Control,
    rule: Rule,
    runtime: Option<Runtime>,
}

/// What the sites say of their visitor.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Judgement {
    /// Requests that they got.
    pub(super) requests: usize,
    /// Gaps between two requests to a site that were held against its pace.
    pub(super) gaps_judged: usize,
    /// Those that were too short.
    pub(super) too_early: usize,
    /// What was forgiven: what a control sender was late by, one time in a thousand.
    pub(super) tolerance_ms: f64,
    /// Even shorter gaps that were forgiven: at most one per thousand, rounded up.
    pub(super) stragglers: usize,
}

/// What a site has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) hits: usize,
    pub(super) last_at: Duration,
    /// The last answer; none when the connection was cut.
    pub(super) last_status: Option<u16>,
    /// How many of each.
    pub(super) answers: BTreeMap<String, usize>,
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

    /// Where it listens.
    pub(super) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// What a site is owed between two requests.
    pub(super) fn interval_of(&self, site: &str) -> Duration {
        self.rule.interval_of(site)
    }

    /// Every request so far but the control's.
    pub(super) fn hits(&self) -> Vec<Hit> {
        let mut hits = self.server.world().hits();
        hits.retain(|hit| &*hit.site != CONTROL_SITE);
        hits
    }

    /// Whether anybody came too soon.
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
        // A runtime can't wait for its threads within another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What each site has seen.
pub(super) fn by_site(hits: &[Hit]) -> HashMap<&str, Seen> {
    let mut sites: HashMap<&str, Seen> = HashMap::new();
    for hit in hits {
        let seen = sites.entry(&hit.site).or_default();
        seen.hits += 1;
        (seen.last_at, seen.last_status) = (hit.at, hit.status);
        *seen.answers.entry(status_word(hit.status)).or_default() += 1;
    }
    sites
}

/// A status for people: a cut connection has none.
pub(super) fn status_word(status: Option<u16>) -> String {
    status.map_or_else(|| "cut".to_owned(), |status| status.to_string())
}

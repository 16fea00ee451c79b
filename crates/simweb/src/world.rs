use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::exchange::{SimRequest, SimResponse};
use crate::hit::{Hit, HitKind};
use crate::judge::Rule;
use crate::robots::SimRobots;
use crate::script::SiteScript;
use crate::site::SimSite;

/// All sites. It can be shared by reference: each site guards its own state.
pub struct World {
    sites: HashMap<Arc<str>, SimSite>,
    strays: Mutex<Vec<Hit>>,
}

impl World {
    /// A world of these sites; of two with the same name, the later one counts.
    pub fn new(scripts: impl IntoIterator<Item = SiteScript>) -> World {
        let site_of = |script: SiteScript| {
            let name: Arc<str> = script.name.to_ascii_lowercase().into();
            (Arc::clone(&name), SimSite::new(name, script))
        };
        World { sites: scripts.into_iter().map(site_of).collect(), strays: Mutex::default() }
    }

    /// Answers a request at this time since the start of the world, and records it.
    ///
    /// An unknown host gets 421, and its hit is recorded as a stray.
    pub fn answer(&self, at: Duration, request: SimRequest<'_>) -> SimResponse {
        let host = request.host.to_ascii_lowercase();
        match self.site(&host) {
            Some(site) => site.answer(at, &request),
            None => self.misdirected(at, &host, &request),
        }
    }

    /// All hits so far, including strays, sorted by time.
    pub fn hits(&self) -> Vec<Hit> {
        let strays = self.strays().clone();
        in_order(self.sites.values().flat_map(SimSite::hits).chain(strays))
    }

    /// All hits of one site so far, sorted by time.
    pub fn hits_of(&self, site: &str) -> Vec<Hit> {
        in_order(self.sites.get(site).map(SimSite::hits).unwrap_or_default())
    }

    /// Like [`World::hits`], but forgets them: a long run keeps its record elsewhere.
    pub fn take_hits(&self) -> Vec<Hit> {
        let strays = std::mem::take(&mut *self.strays());
        in_order(self.sites.values().flat_map(SimSite::take_hits).chain(strays))
    }

    /// The number of matching hits, including strays.
    pub fn count(&self, wanted: impl Fn(&Hit) -> bool) -> usize {
        let strays = self.strays().iter().filter(|hit| wanted(hit)).count();
        strays + self.sites.values().map(|site| site.count(&wanted)).sum::<usize>()
    }

    /// The rule for a client with this interval: a site with a longer Crawl-delay requires that. (A Crawl-delay in a
    /// robots.txt given as text is not read.)
    pub fn rule(&self, interval: Duration) -> Rule {
        self.sites.iter().fold(Rule::new(interval), |rule, (name, site)| match site.script.robots {
            SimRobots::CrawlDelay(delay) if delay > interval => rule.site(name, delay),
            _ => rule,
        })
    }

    fn site(&self, host: &str) -> Option<&SimSite> {
        self.sites.get(host).or_else(|| self.sites.get(without_port(host).trim_end_matches('.')))
    }

    fn misdirected(&self, at: Duration, host: &str, request: &SimRequest<'_>) -> SimResponse {
        let answer = SimResponse::of_status(421);
        self.strays().push(Hit {
            at,
            site: host.into(),
            method: request.method.clone(),
            path: request.path_and_query.into(),
            status: answer.visible_status(),
            user_agent: request.user_agent.into(),
            kind: HitKind::Stray,
        });
        answer
    }

    fn strays(&self) -> MutexGuard<'_, Vec<Hit>> {
        self.strays.lock()
    }
}

fn in_order(hits: impl IntoIterator<Item = Hit>) -> Vec<Hit> {
    let mut hits: Vec<Hit> = hits.into_iter().collect();
    hits.sort_by_key(|hit| hit.at);
    hits
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_simweb::{
    CONTROL_SITE, Control, Hit, HitKind, PaceVerdict, Rule, Server, SiteScript, World, judge,
};

use crate::eventually::eventually_ok;

/// The web that the processes fetch from. It runs in the process of the test, so that its record of hits survives every
/// kill and can be read at any time.
pub struct TestWeb {
    server: Server,
}

impl TestWeb {
    /// Serves these sites on a free port of the loopback. Call it within a tokio runtime.
    pub fn start(sites: impl IntoIterator<Item = SiteScript>) -> TestWeb {
        let sites = sites.into_iter().chain([Control::site()]);
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Server::start(Arc::new(World::new(sites)), listen);
        TestWeb { server: server.unwrap_or_else(|error| panic!("no simulated web: {error}")) }
    }

    /// The flags that direct a process here.
    pub fn flags(&self) -> [String; 4] {
        let resolve = format!("*.test={}", self.server.addr());
        ["--resolve".into(), resolve, "--allow-private".into(), "127.0.0.0/8".into()]
    }

    /// All hits so far except those of the control, sorted by time.
    pub fn hits(&self) -> Vec<Hit> {
        let mut hits = self.server.world().hits();
        hits.retain(|hit| &*hit.site != CONTROL_SITE);
        hits
    }

    /// The number of page requests so far.
    pub fn page_hits(&self) -> usize {
        self.server.world().count(|hit| hit.kind == HitKind::Page && &*hit.site != CONTROL_SITE)
    }

    /// Waits for this many page requests.
    pub async fn until_page_hits(&self, count: usize) {
        eventually_ok("pages to be asked for", async || {
            let hits = self.page_hits();
            if hits >= count { Ok(()) } else { Err(format!("{hits} of {count} were")) }
        })
        .await;
    }

    /// The number of page requests answered with 200 beyond the first of each URL.
    pub fn repeated_pages(&self) -> usize {
        let mut served: HashMap<_, usize> = HashMap::new();
        for hit in self.hits() {
            if hit.kind == HitKind::Page && hit.status == Some(200) {
                *served.entry((hit.site, hit.path)).or_default() += 1;
            }
        }
        served.values().map(|times| times - 1).sum()
    }

    /// Whether the hits of all sites kept this interval.
    pub fn verdict(&self, interval: Duration, tolerance: Duration) -> PaceVerdict {
        judge(&self.hits(), &Rule::new(interval).control(tolerance))
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }
}

//! What a seed decides: how many machines, sites and URLs there are, and what may happen to them.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::dice::Dice;

/// Something that may happen in a run. Each seed switches on a random subset: a fault that happens in every run hides
/// the bugs that appear only without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Store calls take up to half a second.
    SlowNetwork,
    /// Store calls are lost on their way to the store.
    LostCalls,
    /// Answers of the store are lost after the commit.
    LostAnswers,
    /// Store calls arrive long after their caller gave up on them.
    LateCalls,
    /// Machines lose their connection to the store for longer than a lease.
    Partitions,
    /// Machines crash at random times.
    Crashes,
    /// Machines crash right before or after the store carries out a call.
    CrashesAtCalls,
    /// Machines are suspended for longer than a lease.
    Suspensions,
    /// Machines are stopped gracefully and started again.
    Restarts,
    /// The politeness store keeps texts, which processes compare and replace, as in Redis and PostgreSQL.
    SharedStates,
    /// The servers of the stores restart. With `SharedStates`, that of the politeness store forgets its last writes.
    StoreRestarts,
    /// Request heads leave late, because the machine is busy.
    LateHeads,
    /// The clocks of the machines differ by up to a minute and drift.
    Clocks,
    /// The wall clocks of the machines jump by up to an hour and, with `SharedStates`, so does that of the politeness
    /// store's server.
    ClockJumps,
    /// Sites are down for a while.
    Outages,
    /// Sites alternate between up and down.
    Flapping,
    /// Some pages answer 429 or 503 with a Retry-After.
    RetryAfter,
    /// Sites take seconds to answer.
    SlowSites,
    /// Some pages break off, or never answer.
    BrokenPages,
    /// Some pages answer 404 or 500, some only at first.
    FailingPages,
    /// Some pages redirect to other sites.
    Redirects,
    /// Some sites have a Crawl-delay.
    CrawlDelays,
    /// What robots.txt disallows changes.
    ChangingRobots,
    /// robots.txt is unreachable for a while, although its site is up.
    RobotsFail,
    /// Operators pause sites, change their rates, and reset what is known about them.
    Orders,
    /// Operators retry and cancel messages, and retry and drop dead letters.
    Interventions,
    /// URLs have deadlines.
    Deadlines,
    /// URLs belong to groups with a rate of their own.
    Groups,
    /// URLs are queued again and again.
    Duplicates,
    /// The sink of `fetch` is separate from its queue.
    SeparateSink,
}

impl Feature {
    pub const ALL: [Feature; 30] = [
        Feature::SlowNetwork,
        Feature::LostCalls,
        Feature::LostAnswers,
        Feature::LateCalls,
        Feature::Partitions,
        Feature::Crashes,
        Feature::CrashesAtCalls,
        Feature::Suspensions,
        Feature::Restarts,
        Feature::SharedStates,
        Feature::StoreRestarts,
        Feature::LateHeads,
        Feature::Clocks,
        Feature::ClockJumps,
        Feature::Outages,
        Feature::Flapping,
        Feature::RetryAfter,
        Feature::SlowSites,
        Feature::BrokenPages,
        Feature::FailingPages,
        Feature::Redirects,
        Feature::CrawlDelays,
        Feature::ChangingRobots,
        Feature::RobotsFail,
        Feature::Orders,
        Feature::Interventions,
        Feature::Deadlines,
        Feature::Groups,
        Feature::Duplicates,
        Feature::SeparateSink,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::SlowNetwork => "slow-network",
            Feature::LostCalls => "lost-calls",
            Feature::LostAnswers => "lost-answers",
            Feature::LateCalls => "late-calls",
            Feature::Partitions => "partitions",
            Feature::Crashes => "crashes",
            Feature::CrashesAtCalls => "crashes-at-calls",
            Feature::Suspensions => "suspensions",
            Feature::Restarts => "restarts",
            Feature::SharedStates => "shared-states",
            Feature::StoreRestarts => "store-restarts",
            Feature::LateHeads => "late-heads",
            Feature::Clocks => "clocks",
            Feature::ClockJumps => "clock-jumps",
            Feature::Outages => "outages",
            Feature::Flapping => "flapping",
            Feature::RetryAfter => "retry-after",
            Feature::SlowSites => "slow-sites",
            Feature::BrokenPages => "broken-pages",
            Feature::FailingPages => "failing-pages",
            Feature::Redirects => "redirects",
            Feature::CrawlDelays => "crawl-delays",
            Feature::ChangingRobots => "changing-robots",
            Feature::RobotsFail => "robots-fail",
            Feature::Orders => "orders",
            Feature::Interventions => "interventions",
            Feature::Deadlines => "deadlines",
            Feature::Groups => "groups",
            Feature::Duplicates => "duplicates",
            Feature::SeparateSink => "separate-sink",
        }
    }

    pub fn named(name: &str) -> Option<Feature> {
        Feature::ALL.into_iter().find(|feature| feature.name() == name)
    }
}

/// A bug in the world around the pipelines, planted to test that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Heads are sent without permission.
    NoPermission,
    /// Rows of leases that were lost are stored, too.
    StaleRows,
    /// The sink loses rows.
    LostRows,
    /// The page cache loses pages.
    LostPages,
    /// More leases are handed out than were asked for.
    TooManyLeases,
    /// A site never answers, and the machine waits forever.
    EndlessRequest,
    /// A store call fails in a way that no retry can fix.
    BrokenStore,
    /// Processes are not told that they lost their leases.
    LossNotTold,
    /// Calls that take jobs find nothing, and may be repeated at once.
    EmptyTakes,
    /// The first site stays closed in the queues.
    ClosedSite,
}

/// A run, apart from the choices that follow from its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub seed: u64,
    /// Machines that run `fetch`.
    pub fetchers: usize,
    /// Machines that run `pages`.
    pub pagers: usize,
    /// Machines that fetch the messages of `serve`.
    pub retrievers: usize,
    pub sites: usize,
    /// URLs per queue.
    pub urls: usize,
    /// How long faults happen. After that, everything must end.
    pub troubled_for: Duration,
    pub features: BTreeSet<Feature>,
    pub plant: Option<Plant>,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of_seed(seed: u64) -> Scenario {
        let mut dice = Dice::new(seed, "scenario");
        let machines = dice.number(1, 5);
        let doors: Vec<usize> = (0..machines).map(|_| dice.below(3)).collect();
        let running = |door| doors.iter().filter(|of| **of == door).count();
        let fetchers = running(0);
        let pagers = running(1);
        let retrievers = running(2);
        let sites = dice.number(1, 6);
        let urls = dice.number(5, 60);
        let troubled_for = dice.seconds(60, 900);
        let mut features = BTreeSet::new();
        // Half of the seeds have many features, and half of them few.
        let probability = if dice.happens(0.5) { 0.6 } else { 0.2 };
        for feature in Feature::ALL {
            // Each has its own dice, so that a new feature does not change the others of a seed.
            if Dice::new(seed, feature.name()).happens(probability) {
                features.insert(feature);
            }
        }
        // Enough retries to use up a retry budget.
        let is_large = dice.happens(0.02);
        let sites = if is_large { 10 * sites } else { sites };
        let urls = if is_large { 10 * urls } else { urls };
        let plant = None;
        Scenario { seed, fetchers, pagers, retrievers, sites, urls, troubled_for, features, plant }
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    pub fn machines(&self) -> usize {
        self.fetchers + self.pagers + self.retrievers
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { seed, fetchers, pagers, retrievers, sites, urls, .. } = self;
        let Scenario { troubled_for, features, .. } = self;
        let minutes = troubled_for.as_secs_f64() / 60.0;
        write!(
            out,
            "seed {seed}: {fetchers} machines run fetch, {pagers} run pages, {retrievers} run serve; {sites} sites, {urls} \
             URLs per queue, faults for {minutes:.1} min:"
        )?;
        for feature in features {
            write!(out, " {}", feature.name())?;
        }
        Ok(())
    }
}

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::hit::{Hit, HitKind};

/// Finds every hit that came too soon after the previous hit of its site.
///
/// A page directly after a robots.txt of its site may follow at once, because robots.txt was read for it. The
/// robots.txt itself must keep its distance from the hit before it.
pub fn judge(hits: &[Hit], rule: &Rule) -> PaceVerdict {
    let mut verdict = PaceVerdict { gaps_judged: 0, stragglers: 0, violations: Vec::new() };
    for (site, hits) in by_site(hits) {
        let required = rule.interval_of(site);
        for pair in hits.windows(2) {
            let earlier = pair[0];
            let later = pair[1];
            if earlier.kind == HitKind::Robots && later.kind == HitKind::Page {
                continue;
            }
            verdict.gaps_judged += 1;
            let gap = later.at.saturating_sub(earlier.at);
            if gap.saturating_add(rule.tolerance) < required {
                let earlier = earlier.clone();
                let later = later.clone();
                let site = Arc::clone(&later.site);
                verdict.violations.push(Violation { site, earlier, later, gap, required });
            }
        }
    }
    if rule.forgives_stragglers {
        verdict.forgive_stragglers(rule.tolerance);
    }
    verdict
}

/// One gap per thousand, rounded up, may fall short by more than the tolerance, because the tolerance is the control's
/// 99.9th percentile.
const GAPS_PER_STRAGGLER: usize = 1_000;
/// How much beyond the tolerance: a request that is delayed by more than this is not sent. The answer of a politeness
/// store may also take up to a tenth of the required gap. In any case, at least half of the gap must remain.
const LONGEST_HOLD_UP: Duration = Duration::from_millis(100);

/// The minimum distance between the hits of a site.
#[derive(Debug, Clone)]
pub struct Rule {
    interval: Duration,
    interval_by_site: HashMap<String, Duration>,
    tolerance: Duration,
    forgives_stragglers: bool,
}

impl Rule {
    /// The same interval for every site, without tolerance.
    pub fn new(interval: Duration) -> Rule {
        Rule {
            interval,
            interval_by_site: HashMap::new(),
            tolerance: Duration::ZERO,
            forgives_stragglers: false,
        }
    }

    /// Sets another interval for one site.
    pub fn site(mut self, site: &str, interval: Duration) -> Rule {
        self.interval_by_site.insert(site.to_owned(), interval);
        self
    }

    /// Tolerates gaps that are shorter by this much, because of the latency of the network and the machine.
    pub fn tolerance(mut self, tolerance: Duration) -> Rule {
        self.tolerance = tolerance;
        self
    }

    /// Tolerates what this machine does to any sender: the [tolerance](crate::Control::tolerance) of a control in the
    /// same run, and one straggler per thousand gaps, rounded up.
    pub fn control(self, tolerance: Duration) -> Rule {
        Rule { forgives_stragglers: true, ..self.tolerance(tolerance) }
    }

    /// The interval of this site.
    pub fn interval_of(&self, site: &str) -> Duration {
        self.interval_by_site.get(site).copied().unwrap_or(self.interval)
    }
}

/// The result of [`judge()`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceVerdict {
    /// How many gaps were judged; with none, the verdict says nothing.
    pub gaps_judged: usize,
    /// How many were too short but tolerated.
    pub stragglers: usize,
    /// All other gaps that were too short, sorted by site and time.
    pub violations: Vec<Violation>,
}

impl PaceVerdict {
    /// Whether no hit came too soon.
    pub fn is_polite(&self) -> bool {
        self.violations.is_empty()
    }

    fn forgive_stragglers(&mut self, tolerance: Duration) {
        let mut left = self.gaps_judged.div_ceil(GAPS_PER_STRAGGLER);
        let judged = self.violations.len();
        self.violations.retain(|violation| {
            let held_up = LONGEST_HOLD_UP + violation.required / 10;
            let forgiven = (tolerance + held_up).min(violation.required / 2);
            let is_straggler = violation.short_by() <= forgiven && left > 0;
            left -= usize::from(is_straggler);
            !is_straggler
        });
        self.stragglers = judged - self.violations.len();
    }
}

impl fmt::Display for PaceVerdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.violations.len();
        let judged = self.gaps_judged;
        write!(out, "{found} of {judged} gaps too short")?;
        if self.stragglers > 0 {
            write!(out, ", {} more forgiven", self.stragglers)?;
        }
        for violation in self.violations.iter().take(VIOLATIONS_SHOWN) {
            write!(out, "\n  {violation}")?;
        }
        if found > VIOLATIONS_SHOWN {
            write!(out, "\n  and {} more", found - VIOLATIONS_SHOWN)?;
        }
        Ok(())
    }
}

const VIOLATIONS_SHOWN: usize = 10;

/// Two hits of a site that were too close together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The site that was hit.
    pub site: Arc<str>,
    /// The earlier hit.
    pub earlier: Hit,
    /// The hit that came too soon.
    pub later: Hit,
    /// The time between the two.
    pub gap: Duration,
    /// The interval that the site requires.
    pub required: Duration,
}

impl Violation {
    fn short_by(&self) -> Duration {
        self.required.saturating_sub(self.gap)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { site, earlier, later, gap, required } = self;
        write!(
            out,
            "{site}: {} at {:?} came {gap:?} after {}, owed {required:?}",
            later.path, later.at, earlier.path
        )
    }
}

/// The hits of each site, sorted by time; the sites are sorted by name.
pub(crate) fn by_site(hits: &[Hit]) -> BTreeMap<&str, Vec<&Hit>> {
    let mut by_site: BTreeMap<&str, Vec<&Hit>> = BTreeMap::new();
    for hit in hits {
        by_site.entry(&hit.site).or_default().push(hit);
    }
    for hits in by_site.values_mut() {
        hits.sort_by_key(|hit| hit.at);
    }
    by_site
}

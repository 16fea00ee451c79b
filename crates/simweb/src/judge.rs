use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::hit::{Hit, HitKind};

/// Finds every hit that came sooner after its predecessor than the rule allows its site.
///
/// A page that directly follows a robots.txt of its site may follow at once: it is the page that
/// robots.txt was read for. The robots.txt itself keeps its distance from the hit before it.
pub fn judge(hits: &[Hit], rule: &Rule) -> Verdict {
    let mut verdict = Verdict { gaps_judged: 0, stragglers: 0, violations: Vec::new() };
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
/// How far beyond the tolerance: a request that is held up for longer than this is not sent. The answer of a politeness
/// store may take a tenth of the required gap besides. At least half of the gap must remain in any case.
const LONGEST_HOLD_UP: Duration = Duration::from_millis(100);

/// How far apart the hits of a site must be.
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

    /// Another interval for one site.
    pub fn site(mut self, site: &str, interval: Duration) -> Rule {
        self.interval_by_site.insert(site.to_owned(), interval);
        self
    }

    /// Forgives a gap that is shorter by this much: the lateness of the network and of the machine.
    pub fn tolerance(mut self, tolerance: Duration) -> Rule {
        self.tolerance = tolerance;
        self
    }

    /// Forgives what this machine does to any sender: the [tolerance](crate::Control::tolerance) of a control
    /// in the same run, and one straggler per thousand gaps, rounded up.
    pub fn control(self, tolerance: Duration) -> Rule {
        Rule { forgives_stragglers: true, ..self.tolerance(tolerance) }
    }

    /// What this site is owed.
    pub fn interval_of(&self, site: &str) -> Duration {
        self.interval_by_site.get(site).copied().unwrap_or(self.interval)
    }
}

/// What the judge found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How many gaps were held against the rule: a verdict over none says nothing.
    pub gaps_judged: usize,
    /// How many were too short, and forgiven.
    pub stragglers: usize,
    /// Each other gap that was too short, site by site in the order of their times.
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// Whether nobody came too soon.
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

impl fmt::Display for Verdict {
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

/// Two hits of a site that were too close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The site that was hit.
    pub site: Arc<str>,
    /// The hit before.
    pub earlier: Hit,
    /// The hit that came too soon.
    pub later: Hit,
    /// The time between the two.
    pub gap: Duration,
    /// The time that the site was owed.
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

/// The hits of each site in the order of their times; the sites in the order of their names.
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

//! The sites that hold things up, for the overview.

use fetchwell_engine::ports::StoreFault;
use fetchwell_engine::sites::{Condition, SiteQuery};

use super::{maybe_seconds, standing};
use crate::dashboard::subject::Subject;

/// Sites of each kind.
const MOST_EACH: usize = 5;

/// A site in trouble.
pub(in super::super) struct Trouble {
    pub(in super::super) site: String,
    pub(in super::super) word: &'static str,
    pub(in super::super) mood: &'static str,
    pub(in super::super) detail: String,
}

/// Some of them.
pub(in super::super) async fn of(subject: &Subject) -> Result<Vec<Trouble>, StoreFault> {
    let mut found: Vec<Trouble> = Vec::new();
    for condition in [Condition::BreakerOpen, Condition::Paused, Condition::Resting] {
        let query =
            SiteQuery { condition: Some(condition), most: MOST_EACH, ..SiteQuery::default() };
        for row in subject.sites.page(&query).await?.rows {
            if found.iter().any(|known| known.site == row.site) {
                continue;
            }
            let (word, mood) = standing(&row);
            let detail = match condition {
                Condition::BreakerOpen => {
                    format!("next probe in {}", maybe_seconds(&row.breaker.next_probe_in_seconds))
                }
                Condition::Paused => {
                    row.paused.as_ref().map(|order| format!("by {}", order.by)).unwrap_or_default()
                }
                _ => format!("for another {}", maybe_seconds(&row.rests_for_seconds)),
            };
            found.push(Trouble { site: row.site, word, mood, detail });
        }
    }
    Ok(found)
}

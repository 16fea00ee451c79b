//! Sites that are down, paused or resting, for the overview.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::sites::{Condition, SiteQuery};
use futures::future::try_join_all;

use super::{maybe_seconds, standing};
use crate::dashboard::subject::Subject;

/// The maximum number of sites per condition.
const MOST_EACH: usize = 5;

pub(in super::super) struct Trouble {
    pub(in super::super) site: String,
    pub(in super::super) word: &'static str,
    pub(in super::super) mood: &'static str,
    pub(in super::super) detail: String,
}

/// The first sites of each condition.
pub(in super::super) async fn of(subject: &Subject) -> Result<Vec<Trouble>, StoreError> {
    let conditions = [Condition::BreakerOpen, Condition::Paused, Condition::Resting];
    // The queries run concurrently, so that a slow store delays the page only once.
    let pages = try_join_all(conditions.map(async |condition| {
        let query =
            SiteQuery { condition: Some(condition), most: MOST_EACH, ..SiteQuery::default() };
        subject.sites.page(&query).await
    }));
    let mut found: Vec<Trouble> = Vec::new();
    for (condition, page) in conditions.into_iter().zip(pages.await?) {
        for row in page.rows {
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

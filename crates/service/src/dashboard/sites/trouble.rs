//! Sites that are down, paused or resting, for the overview.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::sites::{Condition, SITES_PER_PAGE, SiteQuery, SiteRank};

use super::{in_seconds, maybe_seconds, standing};
use crate::dashboard::subject::Subject;
use crate::sites::SiteRow;

/// The maximum number of sites per condition.
const MOST_EACH: usize = 5;

/// A condition, and what the overview says about a site that has it.
type Told = (Condition, fn(&SiteRow) -> Option<String>);

/// The conditions in the order of [`SiteRank::Trouble`].
const CONDITIONS: [Told; 3] = [
    (Condition::BreakerOpen, next_probe),
    (Condition::Resting, rests_for),
    (Condition::Paused, paused_by),
];

pub(in super::super) struct Trouble {
    pub(in super::super) site: String,
    pub(in super::super) word: &'static str,
    pub(in super::super) mood: &'static str,
    pub(in super::super) detail: String,
}

/// The first sites of each condition. Mostly one query finds them all. That matters, because the store examines every
/// site that has any condition.
pub(in super::super) async fn of(subject: &Subject) -> Result<Vec<Trouble>, StoreError> {
    let worst = subject.sites.worst(SiteRank::Trouble, SITES_PER_PAGE).await?;
    let complete = complete(&worst);
    let mut found = Vec::new();
    for (place, (condition, told)) in CONDITIONS.into_iter().enumerate() {
        if place < complete {
            add(&mut found, &worst, told);
        } else {
            let most = MOST_EACH + found.len();
            let query = SiteQuery { condition: Some(condition), most, ..SiteQuery::default() };
            add(&mut found, &subject.sites.page(&query).await?.rows, told);
        }
    }
    Ok(found)
}

/// How many of the conditions these sites suffice for. If more sites follow, those have no worse condition than the
/// last one.
fn complete(worst: &[SiteRow]) -> usize {
    let Some(last) = worst.get(SITES_PER_PAGE - 1) else { return CONDITIONS.len() };
    let place = CONDITIONS.iter().position(|(_, told)| told(last).is_some());
    place.map_or(CONDITIONS.len(), |place| place + 1)
}

/// Adds the first sites with a condition that are not listed yet.
fn add(found: &mut Vec<Trouble>, rows: &[SiteRow], told: fn(&SiteRow) -> Option<String>) {
    let is_new = |row: &&SiteRow| found.iter().all(|known| known.site != row.site);
    let trouble = |row: &SiteRow| {
        let detail = told(row)?;
        let (word, mood) = standing(row);
        Some(Trouble { site: row.site.clone(), word, mood, detail })
    };
    let new: Vec<Trouble> =
        rows.iter().filter(is_new).filter_map(trouble).take(MOST_EACH).collect();
    found.extend(new);
}

fn next_probe(row: &SiteRow) -> Option<String> {
    let is_down = row.breaker.state != "closed";
    is_down.then(|| format!("next probe in {}", maybe_seconds(&row.breaker.next_probe_in_seconds)))
}

fn paused_by(row: &SiteRow) -> Option<String> {
    row.paused.as_ref().map(|order| format!("by {}", order.by))
}

fn rests_for(row: &SiteRow) -> Option<String> {
    row.rests_for_seconds.as_ref().map(|left| format!("for another {}", in_seconds(left)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::{BreakerRow, OrderRow, PaceRow};

    /// A site whose name says what is wrong with it.
    fn row(site: &str) -> SiteRow {
        let order = OrderRow { by: "ops".to_owned(), for_seconds: 0.0 };
        let state = if site.contains("down") { "open" } else { "closed" };
        SiteRow {
            site: site.to_owned(),
            held_up_by: None,
            pace: PaceRow {
                interval_seconds: 1.0,
                source: "default rate",
                detail: None,
                ordered: None,
                ordered_interval_seconds: None,
            },
            next_slot_in_seconds: None,
            rests_for_seconds: site.contains("resting").then_some(60.0),
            breaker: BreakerRow {
                state,
                consecutive_failures: 0,
                failing_for_seconds: None,
                next_probe_in_seconds: Some(30.0),
            },
            limited_last_hour: 0,
            failed_last_hour: 0,
            last_request_seconds_ago: None,
            last_served_seconds_ago: None,
            robots: Vec::new(),
            paused: site.contains("paused").then_some(order),
            waiting: 0,
        }
    }

    #[test]
    fn sites_that_are_listed_take_no_place_of_another_condition() {
        let mut worst: Vec<SiteRow> = (0..7).map(|n| row(&format!("down-resting-{n}"))).collect();
        worst.extend(["resting", "paused"].map(row));
        assert_eq!(complete(&worst), 3);
        let mut found = Vec::new();
        for (_, told) in CONDITIONS {
            add(&mut found, &worst, told);
        }
        let told: Vec<String> =
            found.iter().map(|one| format!("{}: {}", one.site, one.detail)).collect();
        assert_eq!(told[0], "down-resting-0: next probe in 30 s");
        assert_eq!(
            told[5..],
            [
                "down-resting-5: for another 60 s",
                "down-resting-6: for another 60 s",
                "resting: for another 60 s",
                "paused: by ops"
            ]
        );
    }

    #[test]
    fn a_full_page_lacks_only_the_conditions_after_that_of_its_last_site() {
        for (last, expected) in [("down", 1), ("resting", 2), ("paused", 3), ("failed lately", 3)] {
            let mut worst: Vec<SiteRow> = (1..SITES_PER_PAGE).map(|_| row("down")).collect();
            assert_eq!(complete(&worst), 3);
            worst.push(row(last));
            assert_eq!(complete(&worst), expected, "{last}");
        }
    }
}

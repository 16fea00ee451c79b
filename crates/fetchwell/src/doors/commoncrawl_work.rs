//! `fetchwell commoncrawl work`: batches of captured pages become text documents.
//!
//! A job's payload is the message itself: a JSON array of [`CdxRecord`]s.

use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_engine::ports::{Lease, Moment, Plan, Settlement, Step};
use fetchwell_engine::web::{Outcome, Request};
use fetchwell_policy::outcome::{Blame, Happened};
use fetchwell_policy::retry::{Attempt, History, Next, RetryRule};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

use super::document::DocumentFault;
use super::foregone::by_payload;
use super::ranged::REFUSED_BY_ARCHIVE;

pub use super::document::{Document, WarcPlace};

/// What comes out of this door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkRecord {
    /// A document, one per file and offset.
    Document(Box<Document>),
    /// A page that gives none: counted, logged, skipped.
    Skipped {
        /// The page, by its SURT and timestamp.
        page: String,
        /// Why.
        reason: String,
    },
}

/// Makes the plan of a batch; `base` is the archive's root, with a slash at its end.
pub fn plan(base: &WebUrl, lease: &Lease) -> Box<dyn Plan<WorkRecord>> {
    by_payload(lease, |records: Vec<CdxRecord>| {
        Box::new(BatchPlan {
            base: base.clone(),
            pages: records,
            outstanding: 0,
            history: lease.history,
            done: Vec::new(),
            missing: Vec::new(),
            again: None,
            spent: None,
        })
    })
}

struct BatchPlan {
    base: WebUrl,
    pages: Vec<CdxRecord>,
    /// Ranges that have not come back.
    outstanding: usize,
    /// What the batch had been through when it was taken: a round counts once, however many of its
    /// ranges fail.
    history: History,
    done: Vec<WorkRecord>,
    /// Pages to ask for again, by their place.
    missing: Vec<usize>,
    /// Some range failed and is worth another round: the latest time that was asked for.
    again: Option<(Time, History)>,
    /// Some range failed once too often.
    spent: Option<String>,
}

impl Plan<WorkRecord> for BatchPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<WorkRecord> {
        match last {
            None => {
                let requests = self.requests();
                self.outstanding = requests.len();
                if !requests.is_empty() {
                    return Step::Fetch(requests);
                }
            }
            Some(outcome) if outcome.happened == Happened::Answered(403) => {
                return Step::Halt(REFUSED_BY_ARCHIVE.to_owned());
            }
            Some(outcome) => {
                self.outstanding = self.outstanding.saturating_sub(1);
                self.take(&outcome, moment);
            }
        }
        if self.outstanding > 0 {
            return Step::Fetch(Vec::new());
        }
        let settlement = self.settlement();
        Step::Finish(std::mem::take(&mut self.done), settlement)
    }

    fn has_results_in_hand(&self) -> bool {
        !self.done.is_empty()
    }
}

impl BatchPlan {
    /// One range a page; the tag is the page's place in the batch.
    fn requests(&mut self) -> Vec<Request> {
        let mut requests = Vec::new();
        for (tag, page) in (0..).zip(&self.pages) {
            let request = WarcPlace::of(page).and_then(|place| {
                let url = self.base.join(&place.filename).map_err(|_| DocumentFault::Place)?;
                Ok(place.range().request(url).tagged(tag))
            });
            match request {
                Ok(request) => requests.push(request),
                Err(fault) => self.done.push(skipped(page, &fault)),
            }
        }
        requests
    }

    fn take(&mut self, outcome: &Outcome, moment: Moment) {
        let place = usize::try_from(outcome.tag).unwrap_or(usize::MAX);
        let Some(page) = self.pages.get(place) else { return };
        match (&outcome.happened, &outcome.answer) {
            (Happened::Answered(200..=299), Some(answer)) => {
                self.done.push(match Document::read(page, answer) {
                    Ok(document) => WorkRecord::Document(Box::new(document)),
                    Err(fault) => skipped(page, &fault),
                });
            }
            (happened, _) if is_the_pages_own(happened) => {
                self.done.push(skipped(page, happened));
            }
            _ => {
                self.missing.push(place);
                self.after_failure(outcome, moment);
            }
        }
    }

    fn after_failure(&mut self, outcome: &Outcome, moment: Moment) {
        let attempt = Attempt {
            happened: &outcome.happened,
            retry_after: outcome.retry_after,
            site_last_served: outcome.why.site_last_served,
        };
        match RetryRule::ARCHIVE.next(&attempt, self.history, moment.now, moment.chance) {
            Next::Again { at, history } => {
                let later = self.again.is_none_or(|(before, _)| at > before);
                if later {
                    self.again = Some((at, history));
                }
            }
            Next::Finish => self.spent = Some(outcome.happened.to_string()),
        }
    }

    /// Documents that came are kept in each case; another round asks only for what is missing.
    fn settlement(&mut self) -> Settlement {
        match (self.spent.take(), self.again) {
            (Some(reason), _) => Settlement::Dead { reason },
            (None, Some((at, history))) => {
                let missing: Vec<&CdxRecord> =
                    self.missing.iter().filter_map(|place| self.pages.get(*place)).collect();
                let payload = serde_json::to_vec(&missing).ok();
                Settlement::Retry { at, history, payload }
            }
            (None, None) => Settlement::Done,
        }
    }
}

/// Failures that another round would only repeat, and that say nothing of the other pages.
fn is_the_pages_own(happened: &Happened) -> bool {
    let repeats = !matches!(happened, Happened::Answered(500..=599));
    happened.blame() == Blame::Url && repeats
}

fn skipped(page: &CdxRecord, reason: &impl ToString) -> WorkRecord {
    let page = format!("{} {}", page.surt_url, page.timestamp);
    WorkRecord::Skipped { page, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::samples::{end_of, lease};

    const BATCH: &str = r#"[{"surt_url":"com,example)/","timestamp":"20240712000102","metadata":
        {"url":"https://example.com/","filename":"a/b.warc.gz","offset":"7","length":"9"}}]"#;

    fn end(happened: Happened, rounds_failed: u32) -> (usize, Settlement) {
        let mut batch = lease("batch-1", BATCH);
        batch.history.url_failures = rounds_failed;
        let base = WebUrl::parse("http://archive.test/").unwrap();
        let (records, settlement) = end_of(plan(&base, &batch), happened);
        (records.len(), settlement)
    }

    #[test]
    fn what_a_range_comes_to_decides_about_the_batch() {
        for status in [200, 206, 404, 416] {
            let (skipped, settlement) = end(Happened::Answered(status), 0);
            assert_eq!((skipped, settlement), (1, Settlement::Done), "{status}");
        }
        for status in [429, 500, 503] {
            let (records, settlement) = end(Happened::Answered(status), 0);
            assert!(matches!(settlement, Settlement::Retry { .. }), "{status}");
            assert_eq!(records, 0);
        }
        let (_, settlement) = end(Happened::Answered(500), 2);
        assert!(matches!(settlement, Settlement::Dead { .. }));
    }
}

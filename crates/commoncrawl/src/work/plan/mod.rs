//! The plan of a batch: requests its ranges and reads each captured page in them.
//!
//! A job's payload is the message itself: a JSON array of [`CdxRecord`]s. An invalid item is reported and does not
//! affect the others. A batch has one range in flight at a time, and batches run concurrently: so the texts of one
//! batch are extracted by one thread and those of several by all threads, and no two batches wait for each other.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_archive::cdxj::{BatchItem, CdxRecord, read_batch};
use fetchwell_engine::plan::immediate::dead;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Outcome, Request};
use fetchwell_policy::outcome::{Blame, FetchOutcome};
use fetchwell_policy::retry::{History, Next, RetryRule};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use parking_lot::Mutex;
use tracing::warn;

use super::base_check::{BaseCheck, Verdict};
use super::document::{Document, DocumentFault, LARGE_BYTES, WarcPlace, is_record};
use super::filter::DocumentFilter;
use super::in_hand::InHand;
use super::record::{BrokenPage, WorkRecord};
use crate::archive::byte_range::{ByteRange, REFUSED_BY_ARCHIVE, RangeFault, after_short_answer};
use crate::archive::near_ranges::{JoinRule, join};
use crate::read_time::ReadTime;

/// When its texts reach this size, a batch is written and the rest of it waits for another turn. This bounds the memory
/// used.
const ENOUGH_TEXT_BYTES: usize = 8 << 20;
/// The delay of a batch that cannot start because others have reached the memory limit.
const BREATH: Duration = Duration::from_millis(200);

/// The rules for all batches of a worker.
#[derive(Clone, Debug)]
pub struct BatchPlanRules {
    /// The URL of the archive's files, with a trailing slash.
    pub root: WebUrl,
    /// Which ranges of a file are joined.
    pub join: JoinRule,
    /// The maximum size of a record, inflated.
    pub max_record_bytes: usize,
    /// The time limit for reading a page.
    pub reading: ReadTime,
    pub filter: DocumentFilter,
    /// The texts of all batches that are not written yet.
    pub in_hand: InHand,
    /// Held while a large record is processed.
    pub large: Arc<Mutex<()>>,
    /// Detects a wrong base.
    pub base: Arc<BaseCheck>,
}

/// Makes the plan of a batch. A payload that is not an array is a dead letter at once.
pub fn plan(rules: &Arc<BatchPlanRules>, lease: &Lease) -> Box<dyn Plan<WorkRecord>> {
    let items = match read_batch(&lease.job.payload) {
        Ok(items) => items,
        Err(fault) => return dead(format!("cannot read the batch: {fault}")),
    };
    Box::new(BatchPlan {
        rules: rules.clone(),
        name: lease.job.url.clone(),
        items,
        history: lease.history,
        ranges: VecDeque::new(),
        under_way: None,
        done: Vec::new(),
        text_bytes: 0,
        missing: Vec::new(),
        is_cut_short: false,
        again: None,
        spent: None,
        nothing_there: None,
    })
}

struct BatchPlan {
    rules: Arc<BatchPlanRules>,
    name: String,
    items: Vec<BatchItem>,
    /// The history when the batch was taken: a round counts once, however many of its ranges fail.
    history: History,
    /// The ranges still to request.
    ranges: VecDeque<PageRange>,
    under_way: Option<PageRange>,
    done: Vec<WorkRecord>,
    text_bytes: usize,
    /// Pages to request in another round, by index.
    missing: Vec<usize>,
    /// Whether a range was not read to its end because of the memory limit.
    is_cut_short: bool,
    /// Set if a range failed and is worth another round: the latest time at which to retry.
    again: Option<(Time, History)>,
    /// Set if a range failed for the last time.
    spent: Option<String>,
    /// The last response that a wrong base would give as well.
    nothing_there: Option<String>,
}

/// A range of a file, with the indexes of its pages in the batch.
struct PageRange {
    url: WebUrl,
    range: ByteRange,
    pages: Vec<usize>,
}

impl Plan<WorkRecord> for BatchPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<WorkRecord> {
        match last {
            None => self.lay_out(),
            Some(outcome) => match &outcome.happened {
                FetchOutcome::Answered(403) => return Step::Halt(REFUSED_BY_ARCHIVE.to_owned()),
                // All further requests would be refused, too.
                FetchOutcome::Refused(_) => return Step::Halt(outcome.happened.to_string()),
                _ => self.take(&outcome, moment),
            },
        }
        if self.is_cut_short || self.has_enough() && !self.ranges.is_empty() {
            if self.done.is_empty() && self.again.is_none() && self.spent.is_none() {
                return Step::Finish(Vec::new(), Settlement::HandBack { at: moment.now + BREATH });
            }
            self.leave_the_rest(moment.now, self.history);
        }
        match self.ranges.pop_front() {
            Some(next) => Step::Fetch(vec![self.ask_for(next)]),
            None => self.end(moment),
        }
    }

    fn has_results_in_hand(&self) -> bool {
        !self.done.is_empty()
    }
}

impl BatchPlan {
    /// Until a record has been read, missing files may mean that the base is wrong. So no page is reported as broken,
    /// and the batch is requeued.
    fn end(&mut self, moment: Moment) -> Step<WorkRecord> {
        if let Some(answer) = self.nothing_there.take() {
            match self.rules.base.batch_was_empty(&self.name, &answer) {
                Verdict::Archive => {}
                Verdict::NoArchive(reason) => return Step::Halt(reason),
                Verdict::Unknown { looks } => {
                    warn!(
                        "batch {} found no record; the last answer was {answer}. It will be retried; other \
                         batches will show whether these files are missing or --base is wrong",
                        self.name.escape_debug()
                    );
                    let wait = RetryRule::ARCHIVE.site_backoff.delay(looks, moment.chance);
                    let later = Settlement::retry(moment.now + wait, self.history);
                    return Step::Finish(Vec::new(), later);
                }
            }
        }
        Step::Finish(std::mem::take(&mut self.done), self.settlement())
    }

    /// Groups the pages into ranges, joining those that are close together in a file.
    fn lay_out(&mut self) {
        let mut files: BTreeMap<String, Vec<(usize, ByteRange)>> = BTreeMap::new();
        for place in 0..self.items.len() {
            match self.warc_of(place) {
                Ok(warc) => {
                    let range = warc.range();
                    files.entry(warc.filename).or_default().push((place, range));
                }
                Err(fault) => self.break_off(place, &fault),
            }
        }
        let rule = self.rules.join;
        for (file, pages) in files {
            let Ok(url) = self.rules.root.join(&file) else {
                pages.iter().for_each(|(place, _)| self.break_off(*place, &DocumentFault::Place));
                continue;
            };
            let stretches: Vec<ByteRange> = pages.iter().map(|(_, range)| *range).collect();
            self.ranges.extend(join(&stretches, rule).into_iter().map(|joined| PageRange {
                url: url.clone(),
                range: joined.range,
                pages: joined.parts.into_iter().map(|part| pages[part].0).collect(),
            }));
        }
    }

    /// The position of an item's capture, if the item is valid and has one.
    fn warc_of(&self, place: usize) -> Result<WarcPlace, DocumentFault> {
        let BatchItem { record, fault } = &self.items[place];
        match fault {
            Some(fault) => {
                let number = place + 1;
                let of = self.items.len();
                let fault = fault.clone();
                Err(DocumentFault::Item { number, of, fault })
            }
            None => WarcPlace::of(record).ok_or(DocumentFault::Place),
        }
    }

    fn ask_for(&mut self, next: PageRange) -> Request {
        let request = next.range.request(next.url.clone());
        self.under_way = Some(next);
        request
    }

    fn take(&mut self, outcome: &Outcome, moment: Moment) {
        let Some(asked) = self.under_way.take() else { return };
        match (&outcome.happened, &outcome.answer) {
            (FetchOutcome::Answered(200..=299), Some(answer)) => self.read(asked, answer, moment),
            (happened, answer) if is_the_ranges_own(happened) => {
                if let Some(answer) = answer {
                    self.note_nothing_there(&asked, answer);
                }
                self.try_singly(asked, &DocumentFault::Unread(happened.clone()), moment);
            }
            (happened, _) => {
                self.missing.extend(&asked.pages);
                let next = moment.next(&RetryRule::ARCHIVE, self.history, outcome);
                self.follow(next, happened);
                if matches!(happened.blame(), Blame::Site | Blame::Pace) {
                    self.leave_the_rest_missing();
                }
            }
        }
    }

    /// Notes a response which shows that the file is missing or is something else.
    fn note_nothing_there(&mut self, asked: &PageRange, answer: &Answer) {
        let status = answer.status;
        let file = self.file_of(asked);
        self.nothing_there = Some(match answer.header("location") {
            Some(place) => format!("{status} for {file}, a redirect to {}", place.escape_debug()),
            None if status == 206 => {
                format!("206 for {file}, but not the range that was asked for")
            }
            None => format!("{status} for {file}"),
        });
    }

    /// The file of a range, as the batch names it.
    fn file_of(&self, asked: &PageRange) -> String {
        let first = asked.pages.first().map(|place| &self.items[*place].record);
        first.and_then(CdxRecord::filename).unwrap_or_default().to_owned()
    }

    fn read(&mut self, asked: PageRange, answer: &Answer, moment: Moment) {
        match asked.range.of(answer) {
            Ok(bytes) => {
                let mut pages = asked.pages.iter().copied();
                while !self.has_enough()
                    && let Some(place) = pages.next()
                {
                    self.read_page(place, &asked, bytes);
                }
                self.missing.extend(pages.clone());
                self.is_cut_short |= pages.len() > 0;
            }
            Err(fault) => {
                if !matches!(fault, RangeFault::Short(..)) {
                    self.note_nothing_there(&asked, answer);
                }
                self.try_singly(asked, &fault.into(), moment);
            }
        }
    }

    /// Requests the pages of a joined range one by one: a page with a wrong position must not affect the others.
    fn try_singly(&mut self, asked: PageRange, fault: &DocumentFault, moment: Moment) {
        let PageRange { url, pages, .. } = asked;
        match (&pages[..], fault) {
            ([alone], DocumentFault::Range(RangeFault::Short(..))) => {
                return self.ask_again(*alone, fault, moment);
            }
            ([alone], _) => return self.break_off(*alone, fault),
            _ => {}
        }
        for place in pages.into_iter().rev() {
            if let Some(warc) = WarcPlace::of(&self.items[place].record) {
                let url = url.clone();
                let range = warc.range();
                self.ranges.push_front(PageRange { url, range, pages: vec![place] });
            }
        }
    }

    /// A page with a short response is left for another round, unless its attempts are used up.
    fn ask_again(&mut self, place: usize, fault: &DocumentFault, moment: Moment) {
        self.missing.push(place);
        self.follow(after_short_answer(self.history, moment), fault);
    }

    fn read_page(&mut self, place: usize, asked: &PageRange, bytes: &[u8]) {
        let page = &self.items[place].record;
        let member = WarcPlace::of(page).and_then(|warc| {
            let from = usize::try_from(warc.offset.checked_sub(asked.range.offset)?).ok()?;
            let to = from.checked_add(usize::try_from(warc.length).ok()?)?;
            Some((bytes.get(from..to)?, warc))
        });
        let Some((member, warc)) = member else {
            return self.break_off(place, &DocumentFault::Place);
        };
        if is_record(member) {
            self.rules.base.record_came();
        } else if member.trim_ascii_start().starts_with(b"<") {
            self.nothing_there = Some(format!("HTML in place of a record of {}", warc.filename));
        }
        match self.document(page, warc.clone(), member) {
            Ok(document) => self.keep(document),
            Err(DocumentFault::NotHtml) => {
                self.done.push(WorkRecord::LeftOut { filter: "not_html", warc });
            }
            Err(fault) => self.break_off(place, &fault),
        }
    }

    /// Few records are large, but these take many times their size in memory while their text is extracted. So they are
    /// processed one at a time, while small ones run concurrently. Bombs are rejected before that.
    fn document(
        &self,
        page: &CdxRecord,
        warc: WarcPlace,
        member: &[u8],
    ) -> Result<Document, DocumentFault> {
        let BatchPlanRules { max_record_bytes: max_bytes, reading, .. } = *self.rules;
        match Document::read(page, warc.clone(), member, max_bytes.min(LARGE_BYTES), reading) {
            Err(fault) if fault.is_about_size() && max_bytes > LARGE_BYTES => {
                Document::measure(member, max_bytes)?;
                let _alone = self.rules.large.lock();
                Document::read(page, warc, member, max_bytes, reading)
            }
            read => read,
        }
    }

    fn has_enough(&self) -> bool {
        self.text_bytes >= ENOUGH_TEXT_BYTES || self.rules.in_hand.is_full()
    }

    fn keep(&mut self, mut document: Document) {
        self.done.push(match self.rules.filter.leaves_out(&document) {
            Some(filter) => WorkRecord::LeftOut { filter, warc: document.warc },
            None => {
                self.text_bytes += document.text.len();
                document.in_hand = self.rules.in_hand.hold(document.text.len());
                WorkRecord::Document(Box::new(document))
            }
        });
    }

    fn break_off(&mut self, place: usize, fault: &DocumentFault) {
        let page = &self.items[place].record;
        self.done.push(WorkRecord::Broken(Box::new(BrokenPage {
            url: page.url().map(str::to_owned),
            surt: page.surt_url.clone(),
            timestamp: page.timestamp.clone(),
            warc: WarcPlace::of(page),
            kind: fault.kind().into(),
            reason: fault.to_string(),
            metadata: page.metadata.clone(),
        })));
    }

    fn follow(&mut self, next: Next, failure: &impl ToString) {
        match next {
            Next::Again { at, history } => {
                if self.again.is_none_or(|(before, _)| at > before) {
                    self.again = Some((at, history));
                }
            }
            Next::Finish => self.spent = Some(failure.to_string()),
        }
    }

    /// Leaves what was not requested yet for another round.
    fn leave_the_rest(&mut self, at: Time, history: History) {
        self.again.get_or_insert((at, history));
        self.leave_the_rest_missing();
    }

    fn leave_the_rest_missing(&mut self) {
        self.missing.extend(self.ranges.drain(..).flat_map(|range| range.pages));
    }

    /// Documents that were read are written in any case; another round requests only what is missing.
    fn settlement(&mut self) -> Settlement {
        match (self.spent.take(), self.again) {
            (Some(reason), _) => Settlement::Dead { reason },
            (None, Some((at, history))) => {
                self.missing.sort_unstable();
                let missing: Vec<&CdxRecord> =
                    self.missing.iter().map(|place| &self.items[*place].record).collect();
                Settlement::Retry { at, history, payload: serde_json::to_vec(&missing).ok() }
            }
            (None, None) => Settlement::Done,
        }
    }
}

/// Failures that another round would only repeat, and that do not concern other ranges.
fn is_the_ranges_own(happened: &FetchOutcome) -> bool {
    let repeats = !matches!(happened, FetchOutcome::Answered(500..=599));
    happened.blame() == Blame::Url && repeats
}

#[cfg(test)]
mod tests;

//! What is done with a batch: its ranges are asked for, and each captured page in them is read.
//!
//! A job's payload is the message itself: a JSON array of [`CdxRecord`]s. An item that is none is told of and
//! spoils no other. A batch has one range under way at a time, and batches go side by side: so the texts of one
//! are made by one thread, those of several by as many as there are, and no two ever wait for each other.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_archive::cdxj::{BatchItem, CdxRecord, read_batch};
use fetchwell_engine::plan::immediate::dead;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Outcome, Request};
use fetchwell_policy::outcome::{Blame, Happened};
use fetchwell_policy::retry::{Attempt, History, Next, RetryRule};
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

/// A batch whose texts have come to this is written, and the rest of it waits for another turn: so memory
/// does not grow with what pages say.
const ENOUGH_TEXT_BYTES: usize = 8 << 20;
/// A batch that could not begin, since others have so much in hand, waits so long.
const BREATH: Duration = Duration::from_millis(200);

/// What all batches of a worker go by.
#[derive(Clone, Debug)]
pub struct BatchPlanRules {
    /// The archive's root: a URL that ends in a slash.
    pub root: WebUrl,
    /// Which stretches of a file are asked for as one.
    pub join: JoinRule,
    /// The largest record, inflated.
    pub max_record_bytes: usize,
    /// How long reading a page may take.
    pub reading: ReadTime,
    pub filter: DocumentFilter,
    /// What all batches together have not written yet.
    pub in_hand: InHand,
    /// Held while a large record is taken apart.
    pub large: Arc<Mutex<()>>,
    /// Whether there is an archive.
    pub base: Arc<BaseCheck>,
}

/// Makes the plan of a batch. What is no array of anything is given up at once.
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
    /// What the batch had been through when it was taken: a round counts once, however many of its
    /// ranges fail.
    history: History,
    /// Still to be asked for.
    ranges: VecDeque<PageRange>,
    under_way: Option<PageRange>,
    done: Vec<WorkRecord>,
    text_bytes: usize,
    /// Pages to ask for in another round, by their place.
    missing: Vec<usize>,
    /// Whether a range was not read to its end, since there was enough in hand.
    is_cut_short: bool,
    /// Some range failed and is worth another round: the latest time that was asked for.
    again: Option<(Time, History)>,
    /// Some range failed once too often.
    spent: Option<String>,
    /// The last answer that a wrong base would give as well.
    nothing_there: Option<String>,
}

/// A range of a file, and the pages in it by their places in the batch.
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
                Happened::Answered(403) => return Step::Halt(REFUSED_BY_ARCHIVE.to_owned()),
                // All that follows would be refused as well.
                Happened::Refused(_) => return Step::Halt(outcome.happened.to_string()),
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
        let answer = self.nothing_there.take();
        let verdict = answer.map(|answer| {
            let verdict = self.rules.base.batch_was_empty(&self.name, &answer);
            (verdict, answer)
        });
        match verdict {
            None | Some((Verdict::Archive, _)) => {
                Step::Finish(std::mem::take(&mut self.done), self.settlement())
            }
            Some((Verdict::NoArchive(reason), _)) => Step::Halt(reason),
            Some((Verdict::Unknown { looks }, answer)) => {
                warn!(
                    "batch {} found no record; the last answer was {answer}. It will be retried; other batches \
                     will show whether these files are missing or --base is wrong",
                    self.name.escape_debug()
                );
                let wait = RetryRule::ARCHIVE.site_backoff.delay(looks, moment.chance);
                Step::Finish(Vec::new(), Settlement::retry(moment.now + wait, self.history))
            }
        }
    }

    /// Makes ranges of the pages: near ones of a file are asked for together.
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

    /// Where the capture of an item is, if the item is a page and says so.
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
            (Happened::Answered(200..=299), Some(answer)) => self.read(asked, answer, moment),
            (happened, answer) if is_the_ranges_own(happened) => {
                if let Some(answer) = answer {
                    self.note_nothing_there(&asked, answer);
                }
                self.try_singly(asked, &DocumentFault::Unread(happened.clone()), moment);
            }
            (happened, _) => {
                self.missing.extend(&asked.pages);
                self.after_failure(outcome, moment);
                if matches!(happened.blame(), Blame::Site | Blame::Pace) {
                    self.leave_the_rest_missing();
                }
            }
        }
    }

    /// An answer that says that the file is not there, or that it is something else.
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

    /// The file that a range is of, as batches name it.
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

    /// One page whose place is wrong must not spoil those that it was joined with.
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

    /// A page whose range came short is for another round, unless there were enough of them.
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

    /// Few records are large, and those take many times their size in memory until they are a text: so they are
    /// taken apart one after another, while small ones go on side by side. Bombs are not even begun with.
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
            kind: fault.kind(),
            reason: fault.to_string(),
            metadata: page.metadata.clone(),
        })));
    }

    fn after_failure(&mut self, outcome: &Outcome, moment: Moment) {
        let attempt = Attempt {
            happened: &outcome.happened,
            retry_after: outcome.retry_after,
            site_last_served: outcome.why.site_last_served,
        };
        let next = RetryRule::ARCHIVE.next(&attempt, self.history, moment.now, moment.chance);
        self.follow(next, &outcome.happened);
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

    /// What was not asked for yet is for another round.
    fn leave_the_rest(&mut self, at: Time, history: History) {
        self.again.get_or_insert((at, history));
        self.leave_the_rest_missing();
    }

    fn leave_the_rest_missing(&mut self) {
        self.missing.extend(self.ranges.drain(..).flat_map(|range| range.pages));
    }

    /// Documents that came are kept in each case; another round asks only for what is missing.
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

/// Failures that another round would only repeat, and that say nothing of other ranges.
fn is_the_ranges_own(happened: &Happened) -> bool {
    let repeats = !matches!(happened, Happened::Answered(500..=599));
    happened.blame() == Blame::Url && repeats
}

#[cfg(test)]
mod tests;

//! The rows of a file or of standard output.

use fetchwell_engine::pipeline::GiveUp;
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::job::Lease;
use fetchwell_policy::time::Time;

use super::page_kind::{NOINDEX, PageKind, PageToRecord, joined};
use crate::fetch::{CrawlFields, FetchRow, FetchRules, RowOutcome};

/// Turns pages into rows, as `fetch` does.
pub(super) struct FetchRows(pub(super) FetchRules);

impl PageKind for FetchRows {
    type Row = FetchRow;

    const KEEPS_ATTEMPTS: bool = false;

    fn working_bytes(&self, body: &[u8]) -> usize {
        self.0.reading.working_bytes(body.len())
    }

    fn refused(&self, page: PageToRecord<'_>, reason: &str) -> FetchRow {
        placed(FetchRow::refused(page.url, reason, &self.0, page.now), page.place)
    }

    fn redirected(&self, page: PageToRecord<'_>, fetch_end: &FetchEnd, status: u16) -> FetchRow {
        let mut row = FetchRow::redirected(page.url, fetch_end, status, &self.0, page.now);
        row.archived = page.archived;
        placed(row, page.place)
    }

    fn arrived(
        &self,
        page: PageToRecord<'_>,
        fetch_end: FetchEnd,
        noindex: bool,
        unread: Option<String>,
    ) -> FetchRow {
        let PageToRecord { url, place, archived, now, .. } = page;
        let mut row = if noindex {
            let mut row = FetchRow::without_content(url, &fetch_end, &self.0, now);
            row.outcome = RowOutcome::Noindex;
            row.reason = Some(NOINDEX.to_owned());
            row
        } else {
            let mut row = FetchRow::arrived(url, &fetch_end, &self.0, now);
            row.archived = archived;
            row
        };
        row.reason = joined(row.reason.take(), unread);
        placed(row, place)
    }

    fn has_page(&self, row: &FetchRow) -> bool {
        row.outcome == RowOutcome::Fetched
    }

    fn given_up(
        &self,
        lease: &Lease,
        cause: GiveUp,
        error: &str,
        place: CrawlFields,
        now: Time,
    ) -> FetchRow {
        placed(FetchRow::given_up(lease, cause, error, &self.0, now), place)
    }
}

fn placed(mut row: FetchRow, place: CrawlFields) -> FetchRow {
    row.crawl = Some(place);
    row
}

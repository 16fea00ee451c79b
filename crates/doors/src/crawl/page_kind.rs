//! What a crawl makes of its pages: rows of a file, or results of messages.

use fetchwell_engine::pipeline::GiveUp;
use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::inbox::AttemptRecord;
use fetchwell_engine::ports::job::Lease;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;

use crate::fetch::{Archived, CrawlFields};

/// A page whose row is due.
pub(crate) struct PageToRecord<'a> {
    /// Its URL as it was queued.
    pub(crate) url: &'a str,
    pub(crate) place: CrawlFields,
    /// The failures before this attempt.
    pub(crate) history: &'a History,
    /// The last request, for kinds that keep it.
    pub(crate) attempt: Option<AttemptRecord>,
    /// The exchanges, for WARC output.
    pub(crate) archived: Archived,
    /// By the wall clock.
    pub(crate) now: Time,
}

/// Makes the rows of a crawl. The plan decides which one a page gets.
pub(crate) trait PageKind: Send + Sync + 'static {
    type Row: Weighed + Send + Sync + 'static;

    /// Whether rows have [`PageToRecord::attempt`].
    const KEEPS_ATTEMPTS: bool;

    /// The headers of its requests, which are not carried to another origin.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The memory that [`arrived`](PageKind::arrived) needs besides a given body.
    fn working_bytes(&self, body: &[u8]) -> usize;

    /// The row of a page that was not fetched.
    fn refused(&self, page: PageToRecord<'_>, reason: &str) -> Self::Row;

    /// The row of a page that redirects to one whose content another row has.
    fn redirected(&self, page: PageToRecord<'_>, fetch_end: &FetchEnd, status: u16) -> Self::Row;

    /// The row of a page that was fetched or failed. `noindex`: it asks not to be indexed. `unread`: why some of its
    /// links were not read.
    fn arrived(
        &self,
        page: PageToRecord<'_>,
        fetch_end: FetchEnd,
        noindex: bool,
        unread: Option<String>,
    ) -> Self::Row;

    /// Whether the row has the page.
    fn has_page(&self, row: &Self::Row) -> bool;

    /// The row of a page that the engine gave up.
    fn given_up(
        &self,
        lease: &Lease,
        cause: GiveUp,
        error: &str,
        place: CrawlFields,
        now: Time,
    ) -> Self::Row;
}

/// The reason of a row whose page asks not to be indexed.
pub(crate) const NOINDEX: &str = "the page asks not to be indexed (noindex)";

/// One reason, or both.
pub(crate) fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}; {second}")),
        (first, second) => first.or(second),
    }
}

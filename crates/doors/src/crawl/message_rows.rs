//! The results of messages, for crawls through the API.

use fetchwell_engine::pipeline::GiveUp;
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::inbox::details::CrawlPlace;
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_engine::ports::inbox::{CrawlId, FetchResult};
use fetchwell_engine::ports::job::Lease;
use fetchwell_policy::time::Time;

use super::page_kind::{NOINDEX, PageKind, PageToRecord, joined};
use crate::fetch::CrawlFields;
use crate::read_limits::ReadLimits;
use crate::retriever::{BodyRules, PageResults, give_up_record};

/// Turns pages into results of messages, as `serve` does.
pub(super) struct MessageRows {
    crawl: CrawlId,
    headers: Vec<(&'static str, String)>,
    results: PageResults,
}

impl MessageRows {
    pub(super) fn new(
        crawl: CrawlId,
        options: &Options,
        limits: ReadLimits,
        bodies: BodyRules,
    ) -> MessageRows {
        let headers = options.request_headers();
        MessageRows { crawl, headers, results: PageResults::new(options, limits, bodies) }
    }

    fn place(&self, fields: CrawlFields) -> CrawlPlace {
        let CrawlFields { depth, parent, links_found } = fields;
        CrawlPlace { id: self.crawl.to_string(), depth, parent, links_found: links_found as u64 }
    }

    /// A result without a page.
    fn without_page(
        &self,
        page: PageToRecord<'_>,
        fetch_end: &FetchEnd,
        status: &str,
        error: String,
    ) -> FetchResult {
        let place = self.place(page.place);
        let result = PageResults::without_page(fetch_end, page.now, status, error, Some(place));
        FetchResult { attempt: page.attempt, ..result }
    }
}

impl PageKind for MessageRows {
    type Row = FetchResult;

    const KEEPS_ATTEMPTS: bool = true;

    fn headers(&self) -> Vec<(&'static str, String)> {
        self.headers.clone()
    }

    fn working_bytes(&self, body: &[u8]) -> usize {
        self.results.working_bytes(body)
    }

    fn refused(&self, page: PageToRecord<'_>, reason: &str) -> FetchResult {
        let place = self.place(page.place);
        let result = PageResults::refused(page.url, reason, page.history.failures(), place);
        FetchResult { attempt: page.attempt, ..result }
    }

    fn redirected(&self, page: PageToRecord<'_>, fetch_end: &FetchEnd, status: u16) -> FetchResult {
        let error = format!(
            "redirects to {}, which is in another result of this crawl",
            fetch_end.final_url
        );
        let result = self.without_page(page, fetch_end, FetchResult::REDIRECTED, error);
        FetchResult { http_status: Some(status), content_type: None, ..result }
    }

    fn arrived(
        &self,
        page: PageToRecord<'_>,
        fetch_end: FetchEnd,
        noindex: bool,
        unread: Option<String>,
    ) -> FetchResult {
        if noindex {
            let error = joined(Some(NOINDEX.to_owned()), unread).unwrap_or_default();
            return self.without_page(page, &fetch_end, FetchResult::NOINDEX, error);
        }
        let place = self.place(page.place);
        let mut result = self.results.of(fetch_end, page.now, page.history, Some(place));
        result.error = joined(result.error, unread);
        FetchResult { attempt: page.attempt, ..result }
    }

    fn has_page(&self, row: &FetchResult) -> bool {
        row.is_success()
    }

    fn given_up(
        &self,
        lease: &Lease,
        cause: GiveUp,
        error: &str,
        place: CrawlFields,
        _: Time,
    ) -> FetchResult {
        let result = give_up_record(lease, cause, error);
        let details = PageResults::place_only(&lease.job.url, self.place(place));
        FetchResult { details, ..result }
    }
}

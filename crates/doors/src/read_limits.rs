//! The cost limits for reading a page, the same for every door that reads pages.

use std::time::Duration;

use fetchwell_engine::clock::ThreadTime;
use fetchwell_engine::plan::one_page::decoding_bytes;
use fetchwell_extract::{Article, Limits, TookTooLong, extract_within};
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome};
use url::Url;

/// A node takes at least this many bytes of a page…
const LEAST_BYTES_PER_NODE: usize = 2;
/// …this much memory…
const NODE_BYTES: usize = 128;
/// …and there are at most this many: `fetchwell_extract` leaves out the rest.
const MAX_NODES: usize = 400_000;
/// Copies of the text in memory at once: text, Markdown and their parts while they are written.
const COPIES_OF_TEXT: usize = 10;

/// The limits for reading one page.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// The text beyond this is left out.
    pub max_text_bytes: usize,
    /// CPU time, so that a page is not blamed for a machine that is busy or was suspended.
    pub max_time: Duration,
    /// Whether to use the content of `noscript` on a page with hardly any other text. This is a choice, not a limit.
    pub with_noscript: bool,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits {
            max_text_bytes: 2 << 20,
            max_time: Duration::from_secs(5),
            with_noscript: true,
        }
    }
}

impl ReadLimits {
    pub(crate) fn article(&self, html: &str, found_at: &Url) -> Result<Article, FetchOutcome> {
        self.read(|limits| extract_within(html, found_at, limits))
    }

    /// Runs `read` within the limits. A page that takes too long is a bad answer.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Limits<'_>) -> Result<T, TookTooLong>,
    ) -> Result<T, FetchOutcome> {
        self.within(read).map_err(|TookTooLong| FetchOutcome::BadAnswer(AnswerFault::TookTooLong))
    }

    /// The same, for pages that were not fetched. The clock starts with this call.
    pub fn within<T>(
        &self,
        read: impl FnOnce(&Limits<'_>) -> Result<T, TookTooLong>,
    ) -> Result<T, TookTooLong> {
        let began = ThreadTime::now();
        let is_over = || began.elapsed() > self.max_time;
        let ReadLimits { max_text_bytes, with_noscript, .. } = *self;
        read(&Limits { max_text_bytes, with_noscript, is_over: &is_over })
    }

    /// The memory needed to read a page of this size.
    pub(crate) fn working_bytes(&self, body_bytes: usize) -> usize {
        let nodes = (body_bytes / LEAST_BYTES_PER_NODE).min(MAX_NODES);
        let text = body_bytes.min(self.max_text_bytes).saturating_mul(COPIES_OF_TEXT);
        decoding_bytes(body_bytes).saturating_add(nodes * NODE_BYTES).saturating_add(text)
    }
}

/// For tests that do not depend on time.
#[cfg(test)]
pub(crate) const READING: ReadLimits = ReadLimits {
    max_text_bytes: 1 << 20,
    max_time: Duration::from_secs(3_600),
    with_noscript: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_too_long_is_its_own_fault() {
        let html = "<p>Some words of a page that is long.".repeat(20_000);
        let url = Url::parse("https://a.test/").unwrap();
        let limits =
            ReadLimits { max_text_bytes: 1_000, max_time: Duration::ZERO, with_noscript: true };
        let failed = limits.article(&html, &url).unwrap_err();
        assert_eq!(failed, FetchOutcome::BadAnswer(AnswerFault::TookTooLong));
        let limits = ReadLimits { max_time: Duration::from_secs(3_600), ..limits };
        let article = limits.article(&html, &url).unwrap();
        // Each paragraph is set off by a blank line.
        assert!(article.is_cut && article.text.len() <= 1_100, "{}", article.text.len());
    }
}

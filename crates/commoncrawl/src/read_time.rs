//! The time limit for reading a captured page.

use std::time::Duration;

use fetchwell_engine::clock::ThreadTime;
use fetchwell_extract::{
    Article, Limits, TitledText, TookTooLong, extract_text_within, extract_within,
};
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome};
use url::Url;

/// The CPU time for reading one page, so that a page is not blamed for a machine that is busy or was suspended. Its
/// text is limited only by the size of the record.
#[derive(Clone, Copy, Debug)]
pub struct ReadTime(pub Duration);

impl Default for ReadTime {
    fn default() -> ReadTime {
        ReadTime(Duration::from_secs(5))
    }
}

impl ReadTime {
    pub fn article(self, html: &str, found_at: &Url) -> Result<Article, FetchOutcome> {
        self.within(|limits| extract_within(html, found_at, limits))
    }

    /// Extracts only its title and text.
    pub fn text(self, html: &str, found_at: &Url) -> Result<TitledText, FetchOutcome> {
        self.within(|limits| extract_text_within(html, found_at, limits))
    }

    fn within<T>(
        self,
        read: impl FnOnce(&Limits<'_>) -> Result<T, TookTooLong>,
    ) -> Result<T, FetchOutcome> {
        let began = ThreadTime::now();
        let is_over = || began.elapsed() > self.0;
        read(&Limits { max_text_bytes: usize::MAX, with_noscript: false, is_over: &is_over })
            .map_err(|_| FetchOutcome::BadAnswer(AnswerFault::TookTooLong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_too_long_is_its_own_fault() {
        let html = "<p>Some words of a page that is long.".repeat(20_000);
        let url = Url::parse("https://a.test/").unwrap();
        let none = ReadTime(Duration::ZERO);
        let failed = none.article(&html, &url).unwrap_err();
        assert_eq!(failed, FetchOutcome::BadAnswer(AnswerFault::TookTooLong));
        assert_eq!(none.text(&html, &url).unwrap_err(), failed);
    }
}

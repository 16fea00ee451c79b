//! What reading a record of an archive may cost.

use std::time::Duration;

use fetchwell_engine::clock::ThreadTime;
use fetchwell_extract::{
    Article, Limits, TitledText, TookTooLong, extract_text_within, extract_within,
};
use fetchwell_policy::outcome::{AnswerFault, Happened};
use fetchwell_settings::Values;
use url::Url;

/// The bounds of reading one page.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Text that is read; what follows is left out.
    pub max_text_bytes: usize,
    /// Processor time, so that a page is not blamed for a machine that is busy or was asleep.
    pub max_time: Duration,
}

/// The defaults of the settings.
impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits { max_text_bytes: 2 << 20, max_time: Duration::from_secs(5) }
    }
}

impl ReadLimits {
    /// As the settings say.
    pub(crate) fn of(values: &Values) -> ReadLimits {
        let max_text_bytes = usize::try_from(values.extract_max_text).unwrap_or(usize::MAX);
        ReadLimits { max_text_bytes, max_time: values.extract_max_time }
    }

    /// The same for records of archives, whose text has no limit but the size of the record.
    pub(crate) fn of_records(values: &Values) -> ReadLimits {
        ReadLimits { max_text_bytes: usize::MAX, ..ReadLimits::of(values) }
    }

    /// Reads the article of a page.
    pub(crate) fn article(&self, html: &str, found_at: &Url) -> Result<Article, Happened> {
        self.within(|limits| extract_within(html, found_at, limits)).map_err(too_long)
    }

    /// Reads its title and text only.
    pub(crate) fn text(&self, html: &str, found_at: &Url) -> Result<TitledText, Happened> {
        self.within(|limits| extract_text_within(html, found_at, limits)).map_err(too_long)
    }

    fn within<T>(
        &self,
        read: impl FnOnce(&Limits<'_>) -> Result<T, TookTooLong>,
    ) -> Result<T, TookTooLong> {
        let began = ThreadTime::now();
        let is_over = || began.elapsed() > self.max_time;
        read(&Limits { max_text_bytes: self.max_text_bytes, is_over: &is_over })
    }
}

fn too_long(_: TookTooLong) -> Happened {
    Happened::BadAnswer(AnswerFault::TookTooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_too_long_is_its_own_fault() {
        let html = "<p>Some words of a page that is long.".repeat(20_000);
        let url = Url::parse("https://a.test/").unwrap();
        let limits = ReadLimits { max_text_bytes: 1_000, max_time: Duration::ZERO };
        let failed = limits.article(&html, &url).unwrap_err();
        assert_eq!(failed, Happened::BadAnswer(AnswerFault::TookTooLong));
        assert_eq!(limits.text(&html, &url).unwrap_err(), failed);
        let limits = ReadLimits { max_time: Duration::from_secs(3_600), ..limits };
        let article = limits.article(&html, &url).unwrap();
        // Each paragraph is set off by a blank line.
        assert!(article.is_cut && article.text.len() <= 1_100, "{}", article.text.len());
    }
}

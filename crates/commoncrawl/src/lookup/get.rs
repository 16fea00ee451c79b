//! Fetches a captured page.

use std::borrow::Cow;

use bytes::Bytes;
use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_engine::web::Answer;
use fetchwell_policy::url::WebUrl;
use thiserror::Error;

use super::CrawlReader;
use super::captures::Captures;
use super::pattern::Keys;
use super::plan::{self, AnswerError, Lookup, LookupError};
use crate::archive::byte_range::ByteRange;
use crate::read_time::ReadTime;
use crate::work::{Document, DocumentFault, record_bytes};

/// The maximum number of captures of one page to choose from.
const MAX_CAPTURES: usize = 100_000;

#[derive(Clone)]
pub struct CapturedPage {
    /// Its line in the index.
    pub capture: CdxRecord,
    /// Its WARC record, as stored in the archive.
    pub stored: Bytes,
}

#[derive(Debug, Error)]
#[error(transparent)]
pub struct CaptureError(DocumentFault);

impl CapturedPage {
    /// The page as a text document.
    pub fn document(&self, max_bytes: usize, reading: ReadTime) -> Result<Document, CaptureError> {
        Document::of_capture(&self.capture, &self.stored, max_bytes, reading).map_err(CaptureError)
    }

    /// The bytes of the WARC record, at most `max_bytes`.
    pub fn record(&self, max_bytes: usize) -> Result<Cow<'_, [u8]>, CaptureError> {
        record_bytes(&self.stored, max_bytes).map_err(CaptureError)
    }
}

impl CrawlReader<'_> {
    /// Fetches a page: the newest capture whose time starts with `timestamp`, or without one the newest with status
    /// 200; `None` if there is no such capture.
    pub async fn get(
        self,
        keys: Keys,
        timestamp: Option<String>,
    ) -> Result<Option<CapturedPage>, LookupError> {
        let indexes = self.archive.indexes(self.crawl)?;
        let fetching = Fetching {
            captures: Captures::new(indexes, keys, MAX_CAPTURES),
            root: self.archive.root.clone(),
            timestamp,
            chosen: None,
            record: None,
        };
        plan::run(self, fetching).await
    }
}

/// Searches the index, then fetches one record.
#[derive(Clone)]
struct Fetching {
    captures: Captures,
    root: WebUrl,
    timestamp: Option<String>,
    chosen: Option<(CdxRecord, ByteRange)>,
    record: Option<Bytes>,
}

impl Lookup for Fetching {
    type Found = Option<CapturedPage>;

    fn wanted(&self) -> Option<(WebUrl, ByteRange)> {
        match (&self.chosen, &self.record) {
            (Some((capture, range)), None) => {
                Some((self.root.join(capture.filename()?).ok()?, *range))
            }
            (Some(_), Some(_)) => None,
            (None, _) => self.captures.wanted(),
        }
    }

    fn take(&mut self, answer: &Answer) -> Result<(), AnswerError> {
        if let Some((_, range)) = &self.chosen {
            let record = range.of(answer)?;
            self.record = Some(answer.body.slice_ref(record));
            return Ok(());
        }
        self.captures.take(answer)?;
        if self.captures.wanted().is_none()
            && let Some(capture) = choose(&self.captures.found.captures, self.timestamp.as_deref())
        {
            let place = || Some(ByteRange { offset: capture.offset()?, length: capture.length()? });
            let range = place().filter(|_| capture.filename().is_some());
            let range = range.ok_or(AnswerError::NoPlace)?;
            self.chosen = Some((capture.clone(), range));
        }
        Ok(())
    }

    fn found(&self) -> Option<CapturedPage> {
        let (capture, _) = self.chosen.clone()?;
        Some(CapturedPage { capture, stored: self.record.clone()? })
    }
}

/// The newest capture whose time starts with `timestamp`, or without one the newest with status 200.
fn choose<'c>(captures: &'c [CdxRecord], timestamp: Option<&str>) -> Option<&'c CdxRecord> {
    let is_meant = |capture: &&CdxRecord| match timestamp {
        Some(time) => capture.timestamp.starts_with(time),
        None => capture.metadata.get("status").is_some_and(|status| status == "200"),
    };
    captures.iter().filter(is_meant).max_by_key(|capture| &capture.timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sound_capture_is_chosen_unless_a_time_is_said() {
        let capture = |timestamp: &str, status: &str| CdxRecord {
            surt_url: "com,example)/".to_owned(),
            timestamp: timestamp.to_owned(),
            metadata: [("status".to_owned(), status.to_owned())].into(),
        };
        let captures = [
            capture("20240701000000", "200"),
            capture("20240703000000", "200"),
            capture("20240704000000", "404"),
        ];
        let chosen = |time| choose(&captures, time).map(|capture| capture.timestamp.as_str());
        assert_eq!(chosen(None), Some("20240703000000"));
        assert_eq!(chosen(Some("20240701")), Some("20240701000000"));
        assert_eq!(chosen(Some("20240704000000")), Some("20240704000000"));
        assert_eq!(chosen(Some("2023")), None);
    }
}

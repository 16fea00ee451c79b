//! A byte range of an archive file: requested exactly, and accepted only if it is complete.

use std::time::Duration;

use fetchwell_archive::cluster_idx::ClusterEntry;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::plan::Moment;
use fetchwell_engine::web::{Answer, Request, Timeouts};
use fetchwell_policy::retry::{History, Next, RetryRule};
use fetchwell_policy::url::WebUrl;
use thiserror::Error;

/// The reason for ending a run when the archive answers 403.
pub(crate) const REFUSED_BY_ARCHIVE: &str =
    "the archive answered 403: access is denied, perhaps only for now; try again later";

/// A block of about 3,000 lines has about 1 MiB; anything much larger is not a block.
pub(crate) const MAX_BLOCK_BYTES: usize = 16 << 20;

/// The base timeout of a range request, to which the time for its length is added.
const PATIENCE: Duration = Duration::from_secs(30);
/// A range may be much longer than a page, so its timeout grows with its length, at this rate.
const LEAST_BYTES_PER_SECOND: u64 = 128 << 10;

/// A range of bytes in a file. It is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Why a response is not the requested range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RangeFault {
    #[error("the server answered {0} instead of 206")]
    Status(u16),
    #[error("the server sent {}", other_range(.0.as_deref()))]
    ContentRange(Option<String>),
    #[error("the server sent {0} bytes instead of {1}")]
    Length(u64, u64),
    /// The file goes on beyond this, so another attempt may return all of it.
    #[error("the server sent only {0} of {1} bytes")]
    Short(u64, u64),
}

fn other_range(content_range: Option<&str>) -> String {
    match content_range {
        None | Some("") => "a 206 without Content-Range".to_owned(),
        Some(other) => format!("a different range: {}", other.escape_debug()),
    }
}

/// What to do after a short response. It counts as a server error, so it is retried as often.
pub(crate) fn after_short_answer(history: History, moment: Moment) -> Next {
    let rule = RetryRule::ARCHIVE;
    let url_failures = history.url_failures.saturating_add(1);
    if url_failures >= rule.server_error_attempts {
        return Next::Finish;
    }
    let at = moment.now + rule.backoff.delay(url_failures, moment.chance);
    Next::Again { at, history: History { url_failures, ..history } }
}

impl ByteRange {
    /// The range of an index block in its CDX file.
    pub(crate) fn of_block(block: &ClusterEntry) -> ByteRange {
        ByteRange { offset: block.offset, length: block.length }
    }

    /// The request for this range. An archive is made for programs, so robots.txt does not apply, and the bytes are
    /// requested without content encoding. If the server ignores the range and sends the whole file, its body is not
    /// read. One byte more than the range is accepted, so that a response that is too long can be detected.
    pub(crate) fn request(self, url: WebUrl) -> Request {
        let enough = usize::try_from(self.length.saturating_add(1)).unwrap_or(usize::MAX);
        let time = PATIENCE + Duration::from_secs(self.length / LEAST_BYTES_PER_SECOND);
        let mut request = Request::ungoverned(url)
            .with_header("range", format!("bytes={}-{}", self.offset, self.last()))
            .with_header("accept-encoding", "identity")
            .with_wanted_status(206)
            .with_enough(enough);
        request.timeouts = Timeouts { request: Some(time), ..Timeouts::default() };
        request
    }

    /// The bytes of the range up to the end of the file, and the length of the file.
    pub(crate) fn of_up_to_end(self, answer: &Answer) -> Result<(&[u8], u64), RangeFault> {
        let stated = answer.header("content-range");
        let file_bytes = stated.and_then(|stated| stated.rsplit_once('/')?.1.parse().ok());
        let Some(file_bytes) = file_bytes.filter(|bytes| *bytes > self.offset) else {
            let fault = RangeFault::ContentRange(stated.map(str::to_owned));
            return Err(if answer.status == 206 {
                fault
            } else {
                RangeFault::Status(answer.status)
            });
        };
        let there = ByteRange { length: self.length.min(file_bytes - self.offset), ..self };
        Ok((there.of(answer)?, file_bytes))
    }

    /// Schedules a retry if the response is too short; `None` if it is complete or all attempts are used up.
    pub(crate) fn after_short(
        self,
        answer: &Answer,
        history: History,
        moment: Moment,
    ) -> Option<Settlement> {
        let faults = [self.of(answer).err(), self.of_up_to_end(answer).err()];
        let is_short = faults.iter().any(|fault| matches!(fault, Some(RangeFault::Short(..))));
        match after_short_answer(history, moment) {
            Next::Again { at, history } if is_short => Some(Settlement::retry(at, history)),
            _ => None,
        }
    }

    /// Parses a `Range` header of ours.
    pub(crate) fn of_header(value: &str) -> Option<ByteRange> {
        let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
        let offset: u64 = first.parse().ok()?;
        let last: u64 = last.parse().ok()?;
        Some(ByteRange { offset, length: last.checked_sub(offset)?.checked_add(1)? })
    }

    /// The `Content-Range` header for this range of a file.
    pub(super) fn content_range(self, file_bytes: u64) -> String {
        format!("bytes {}-{}/{file_bytes}", self.offset, self.last())
    }

    /// The offset after the last byte.
    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    pub(crate) fn of(self, answer: &Answer) -> Result<&[u8], RangeFault> {
        if answer.status != 206 {
            return Err(RangeFault::Status(answer.status));
        }
        let stated = answer.header("content-range").unwrap_or_default();
        let length = answer.body.len() as u64;
        let is_whole = stated.starts_with(&format!("bytes {}-{}/", self.offset, self.last()));
        let is_short = if is_whole { length < self.length } else { self.is_begun_by(stated) };
        if is_short {
            return Err(RangeFault::Short(length.min(self.length), self.length));
        }
        if !is_whole {
            let stated = answer.header("content-range").map(str::to_owned);
            return Err(RangeFault::ContentRange(stated));
        }
        if length != self.length {
            return Err(RangeFault::Length(length, self.length));
        }
        Ok(&answer.body)
    }

    /// Whether a `Content-Range` covers only the beginning of this range, although the file does not end there.
    fn is_begun_by(self, content_range: &str) -> bool {
        let parsed = || {
            let (range, file_bytes) = content_range.strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let last: u64 = last.parse().ok()?;
            // A server that does not know the length of the file sends an asterisk instead.
            let ends_there = file_bytes.parse::<u64>() == Ok(last.saturating_add(1));
            Some(first.parse::<u64>() == Ok(self.offset) && last < self.last() && !ends_there)
        };
        parsed().unwrap_or(false)
    }

    fn last(self) -> u64 {
        self.end().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::FetchOutcome;
    use fetchwell_testkit::samples::outcome;

    use super::*;

    const RANGE: ByteRange = ByteRange { offset: 10, length: 4 };

    fn taken(status: u16, content_range: &str, body: &str) -> Result<Vec<u8>, RangeFault> {
        let mut answer = outcome(FetchOutcome::Answered(status), body).answer.unwrap();
        answer.headers.insert("content-range", content_range.parse().unwrap());
        RANGE.of(&answer).map(<[u8]>::to_vec)
    }

    #[test]
    fn only_the_exact_range_is_taken() {
        assert_eq!(taken(206, "bytes 10-13/99", "abcd"), Ok(b"abcd".to_vec()));
        assert_eq!(taken(206, "bytes 10-13/*", "abcd"), Ok(b"abcd".to_vec()));
        assert_eq!(taken(200, "bytes 10-13/99", "abcd"), Err(RangeFault::Status(200)));
        assert_eq!(taken(206, "bytes 10-13/99", "abcde"), Err(RangeFault::Length(5, 4)));
        for other in ["bytes 0-13/99", "bytes 10-130/999", "items 10-13/99", ""] {
            let fault = RangeFault::ContentRange(Some(other.to_owned()));
            assert_eq!(taken(206, other, "abcd"), Err(fault));
        }
    }

    #[test]
    fn another_range_is_named() {
        for (stated, text) in [
            (None, "the server sent a 206 without Content-Range"),
            (Some("bytes 0-13/99"), "the server sent a different range: bytes 0-13/99"),
        ] {
            assert_eq!(RangeFault::ContentRange(stated.map(str::to_owned)).to_string(), text);
        }
    }

    #[test]
    fn what_comes_short_is_told_from_what_the_file_does_not_have() {
        for (stated, body) in [
            ("bytes 10-13/99", "abc"),
            ("bytes 10-13/*", ""),
            ("bytes 10-12/99", "abc"),
            ("bytes 10-12/*", "abc"),
        ] {
            let fault = RangeFault::Short(body.len() as u64, 4);
            assert_eq!(taken(206, stated, body), Err(fault), "{stated}");
        }
        for stated in ["bytes 10-12/13", "bytes 11-12/99", "bytes 10-12", "bytes 10-x/99"] {
            let fault = RangeFault::ContentRange(Some(stated.to_owned()));
            assert_eq!(taken(206, stated, "abc"), Err(fault));
        }
    }

    #[test]
    fn a_server_that_sends_too_little_is_asked_three_times() {
        let moment = fetchwell_testkit::samples::MOMENT;
        let mut history = History::default();
        for asked in 1..3 {
            let Next::Again { at, history: next } = after_short_answer(history, moment) else {
                panic!("it is given up after {asked}");
            };
            assert!(at > moment.now);
            history = next;
        }
        assert_eq!(after_short_answer(history, moment), Next::Finish);
    }

    #[test]
    fn a_range_may_end_with_its_file() {
        let taken = |status, content_range: &str, body: &str| {
            let mut answer = outcome(FetchOutcome::Answered(status), body).answer.unwrap();
            answer.headers.insert("content-range", content_range.parse().unwrap());
            let taken = RANGE.of_up_to_end(&answer);
            taken.map(|(bytes, file_bytes)| (bytes.to_vec(), file_bytes)).ok()
        };
        assert_eq!(taken(206, "bytes 10-13/99", "abcd"), Some((b"abcd".to_vec(), 99)));
        assert_eq!(taken(206, "bytes 10-11/12", "ab"), Some((b"ab".to_vec(), 12)));
        for (status, stated, body) in [
            (206, "bytes 10-11/99", "ab"),
            (206, "bytes 10-13/*", "abcd"),
            (206, "bytes 10-13/9", "abcd"),
            (200, "", "abcd"),
            (206, "bytes 10-11/12", "a"),
        ] {
            assert_eq!(taken(status, stated, body), None, "{stated}");
        }
    }

    #[test]
    fn the_request_names_both_ends() {
        let request = RANGE.request(WebUrl::parse("http://a.test/x.gz").unwrap());
        assert_eq!(request.headers[0], ("range", "bytes=10-13".to_owned()));
        assert!(!request.obeys_robots);
        assert_eq!((request.enough_bytes, request.wants_body_of(200)), (Some(5), false));
        assert_eq!(ByteRange::of_header(&request.headers[0].1), Some(RANGE));
        for other in ["bytes=3-1", "bytes=-5", "bytes=5-", "items=1-2", ""] {
            assert_eq!(ByteRange::of_header(other), None, "{other}");
        }
    }
}

//! A range of an archive's file: asked for exactly, and taken only when it is exactly that.

use fetchwell_engine::web::{Answer, Request};
use fetchwell_policy::url::WebUrl;
use thiserror::Error;

/// Why a run ends when an archive answers 403.
pub(crate) const REFUSED_BY_ARCHIVE: &str =
    "the archive answered 403: it does not want to be read by us, or not now; try again later";

/// A stretch of a file, in bytes. It is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    /// Where it begins.
    pub(crate) offset: u64,
    /// How long it is.
    pub(crate) length: u64,
}

/// Why an answer is not the range that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum RangeFault {
    #[error("the server answered {0} instead of 206")]
    Status(u16),
    #[error("the server sent another range: {0:?}")]
    ContentRange(Option<String>),
    #[error("the range has {0} bytes instead of {1}")]
    Length(usize, u64),
}

impl ByteRange {
    /// The request. An archive is made to be read by programs: robots.txt has no say, and the bytes
    /// are wanted as they lie there.
    pub(crate) fn request(self, url: WebUrl) -> Request {
        Request::ungoverned(url)
            .with_header("range", format!("bytes={}-{}", self.offset, self.last()))
            .with_header("accept-encoding", "identity")
    }

    /// The bytes of the range.
    pub(crate) fn of(self, answer: &Answer) -> Result<&[u8], RangeFault> {
        if answer.status != 206 {
            return Err(RangeFault::Status(answer.status));
        }
        let stated = answer.header("content-range");
        let expected = format!("bytes {}-{}/", self.offset, self.last());
        if !stated.is_some_and(|stated| stated.starts_with(&expected)) {
            return Err(RangeFault::ContentRange(stated.map(str::to_owned)));
        }
        if u64::try_from(answer.body.len()) != Ok(self.length) {
            return Err(RangeFault::Length(answer.body.len(), self.length));
        }
        Ok(&answer.body)
    }

    fn last(self) -> u64 {
        self.offset.saturating_add(self.length).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::Happened;

    use super::*;
    use crate::doors::samples::outcome;

    const RANGE: ByteRange = ByteRange { offset: 10, length: 4 };

    fn taken(status: u16, content_range: &str, body: &str) -> Result<Vec<u8>, RangeFault> {
        let mut answer = outcome(Happened::Answered(status), body).answer.unwrap();
        answer.headers.insert("content-range", content_range.parse().unwrap());
        RANGE.of(&answer).map(<[u8]>::to_vec)
    }

    #[test]
    fn only_the_exact_range_is_taken() {
        assert_eq!(taken(206, "bytes 10-13/99", "abcd"), Ok(b"abcd".to_vec()));
        assert_eq!(taken(206, "bytes 10-13/*", "abcd"), Ok(b"abcd".to_vec()));
        assert_eq!(taken(200, "bytes 10-13/99", "abcd"), Err(RangeFault::Status(200)));
        assert_eq!(taken(206, "bytes 10-13/99", "abc"), Err(RangeFault::Length(3, 4)));
        for other in ["bytes 0-13/99", "bytes 10-130/999", "items 10-13/99", ""] {
            let fault = RangeFault::ContentRange(Some(other.to_owned()));
            assert_eq!(taken(206, other, "abcd"), Err(fault));
        }
    }

    #[test]
    fn the_request_names_both_ends() {
        let request = RANGE.request(WebUrl::parse("http://a.test/x.gz").unwrap());
        assert_eq!(request.headers[0], ("range", "bytes=10-13".to_owned()));
        assert!(!request.obeys_robots);
    }
}

//! Which bodies are kept beside their results.

use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::ports::inbox::{NewBody, ResultBody};

/// The limits for bodies that are kept.
#[derive(Clone, Copy, Debug)]
pub struct BodyRules {
    /// The maximum size of a body; 0 keeps none.
    pub max_bytes: u64,
    /// How long a body is kept.
    pub keep: Duration,
    /// The maximum size of all bodies of one caller.
    pub quota_bytes: u64,
}

impl BodyRules {
    /// How the body of a result with this content is kept. A body that is equal to `content`, byte for byte, takes no
    /// extra space, so it needs no limit.
    pub(super) fn keep(&self, body: Bytes, content: Option<&str>) -> ResultBody {
        if body.is_empty() {
            return ResultBody::Absent;
        }
        // PostgreSQL replaces NUL characters in texts.
        if content.is_some_and(|text| text.as_bytes() == body) && !body.contains(&0) {
            return ResultBody::Content;
        }
        if body.len() as u64 > self.max_bytes.min(self.quota_bytes) {
            return ResultBody::Absent;
        }
        let bytes = without_spare_capacity(body);
        ResultBody::New(NewBody { bytes, keep: self.keep, quota_bytes: self.quota_bytes })
    }
}

/// A buffer grew while it was filled, so up to half of it is empty; until the result is stored, the budget counts only
/// its length.
fn without_spare_capacity(body: Bytes) -> Bytes {
    Bytes::from(Vec::from(body).into_boxed_slice())
}

/// For tests.
#[cfg(test)]
pub(super) const KEEPING: BodyRules =
    BodyRules { max_bytes: 1_000, keep: Duration::from_secs(60), quota_bytes: 2_000 };

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(body: &'static [u8], content: Option<&str>) -> ResultBody {
        KEEPING.keep(Bytes::from_static(body), content)
    }

    fn new(bytes: &'static [u8]) -> ResultBody {
        let bytes = Bytes::from_static(bytes);
        let BodyRules { keep, quota_bytes, .. } = KEEPING;
        ResultBody::New(NewBody { bytes, keep, quota_bytes })
    }

    #[test]
    fn a_body_is_stored_only_if_its_content_does_not_repeat_it() {
        assert_eq!(kept(b"page", Some("page")), ResultBody::Content);
        assert_eq!(kept(b"caf\xe9", Some("caf\u{e9}")), new(b"caf\xe9"));
        assert_eq!(kept(b"\xef\xbb\xbfpage", Some("page")), new(b"\xef\xbb\xbfpage"));
        assert_eq!(kept(b"a\0b", Some("a\0b")), new(b"a\0b"));
        assert_eq!(kept(b"\x89PNG", None), new(b"\x89PNG"));
        assert_eq!(kept(b"", Some("")), ResultBody::Absent);
    }

    #[test]
    fn both_limits_hold() {
        let of = |bytes: usize| Bytes::from(vec![1; bytes]);
        let is_kept = |rules: BodyRules, bytes| rules.keep(of(bytes), None) != ResultBody::Absent;
        assert!(is_kept(KEEPING, 1_000) && !is_kept(KEEPING, 1_001));
        let scarce = BodyRules { quota_bytes: 10, ..KEEPING };
        assert!(is_kept(scarce, 10) && !is_kept(scarce, 11));
        assert!(!is_kept(BodyRules { max_bytes: 0, ..KEEPING }, 1));
        // A body that takes no extra space has no limit.
        let page = "x".repeat(5_000);
        let body = KEEPING.keep(Bytes::from(page.clone()), Some(&page));
        assert_eq!(body, ResultBody::Content);
    }
}

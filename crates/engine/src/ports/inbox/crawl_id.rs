//! Crawl IDs.

use std::fmt;
use std::str::FromStr;

use super::MessageId;
use super::message_id::parse;

const PREFIX: &str = "crawl_";

/// The globally unique ID of a crawl. Later IDs sort after earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrawlId(pub [u8; 16]);

impl From<MessageId> for CrawlId {
    /// A new message ID is as good as a new crawl ID.
    fn from(id: MessageId) -> CrawlId {
        CrawlId(id.0)
    }
}

impl fmt::Display for CrawlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for CrawlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The text is not a crawl ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a crawl id is crawl_ followed by 32 lowercase hexadecimal digits")]
pub struct NoCrawlId;

impl FromStr for CrawlId {
    type Err = NoCrawlId;

    /// Accepts only the exact output of [`fmt::Display`], so that a crawl has only one ID.
    fn from_str(text: &str) -> Result<CrawlId, NoCrawlId> {
        parse(PREFIX, text).map(CrawlId).ok_or(NoCrawlId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written_and_is_no_message() {
        let id = CrawlId([7; 16]);
        let text = id.to_string();
        assert_eq!(text, "crawl_07070707070707070707070707070707");
        assert_eq!(text.parse(), Ok(id));
        assert!(text.parse::<MessageId>().is_err());
        assert_eq!("crawl_7".parse::<CrawlId>(), Err(NoCrawlId));
    }
}

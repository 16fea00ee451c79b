//! Batch IDs.

use std::fmt;
use std::str::FromStr;

use super::MessageId;
use super::message_id::parse;

const PREFIX: &str = "batch_";

/// The globally unique ID of a batch: that of its first message, with another prefix. A repeated submission, of which
/// the store keeps only the messages, thus has the same batch. Later IDs sort after earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(pub [u8; 16]);

impl BatchId {
    /// The ID of the batch with these messages, in the order of their submission; `None` if there are none.
    pub fn of(messages: impl IntoIterator<Item = MessageId>) -> Option<BatchId> {
        messages.into_iter().next().map(|first| BatchId(first.0))
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The text is not a batch ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a batch id is batch_ followed by 32 lowercase hexadecimal digits")]
pub struct NoBatchId;

impl FromStr for BatchId {
    type Err = NoBatchId;

    /// Accepts only the exact output of [`fmt::Display`], so that a batch has only one ID.
    fn from_str(text: &str) -> Result<BatchId, NoBatchId> {
        parse(PREFIX, text).map(BatchId).ok_or(NoBatchId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_the_digits_of_its_first_message_and_is_no_message() {
        let messages = [MessageId([7; 16]), MessageId([8; 16])];
        let id = BatchId::of(messages).unwrap();
        let text = id.to_string();
        assert_eq!(text, messages[0].to_string().replacen("msg_", "batch_", 1));
        assert_eq!(text.parse(), Ok(id));
        assert!(text.parse::<MessageId>().is_err());
        assert_eq!(messages[0].to_string().parse::<BatchId>(), Err(NoBatchId));
        assert_eq!(BatchId::of([]), None);
    }
}

//! Message IDs.

use std::fmt;
use std::str::FromStr;

use fetchwell_policy::time::Time;

/// The prefix of every ID, so that people recognise one.
const PREFIX: &str = "msg_";

/// The globally unique ID of a message. Later IDs sort after earlier ones, so that an index of them grows at its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub [u8; 16]);

impl MessageId {
    /// Creates an ID from 48 bits of time in milliseconds and 80 random bits.
    pub fn new(wall: Time, chance: u128) -> MessageId {
        let ms = u64::try_from(wall.as_micros() / 1_000).unwrap_or(0);
        let [_, _, time @ ..] = ms.to_be_bytes();
        let mut bytes = chance.to_be_bytes();
        bytes[..6].copy_from_slice(&time);
        MessageId(bytes)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Formatting one number is several times faster than formatting sixteen bytes.
        write!(f, "{PREFIX}{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The text is not a message ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message id is msg_ followed by 32 lowercase hexadecimal digits")]
pub struct NoMessageId;

impl FromStr for MessageId {
    type Err = NoMessageId;

    /// Accepts only the exact output of [`fmt::Display`], so that a message has only one ID.
    fn from_str(text: &str) -> Result<MessageId, NoMessageId> {
        parse(PREFIX, text).map(MessageId).ok_or(NoMessageId)
    }
}

/// The bytes of an ID with this prefix.
pub(super) fn parse(prefix: &str, text: &str) -> Option<[u8; 16]> {
    let digits = text.strip_prefix(prefix)?.as_bytes();
    let mut bytes = [0; 16];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written_and_no_other_way() {
        let id = MessageId::new(Time::from_secs(1_700_000_000), u128::MAX);
        let text = id.to_string();
        assert_eq!(text, "msg_018bcfe56800ffffffffffffffffffff");
        assert_eq!(text.parse(), Ok(id));
        for wrong in
            ["", "msg_", &text[1..], &text[..35], &text.to_uppercase(), &(text.clone() + "0")]
        {
            assert_eq!(wrong.parse::<MessageId>(), Err(NoMessageId), "{wrong}");
        }
    }

    #[test]
    fn later_names_sort_after_earlier_ones() {
        let at = |secs| MessageId::new(Time::from_secs(secs), u128::from(u64::MAX));
        assert!(at(1) < at(2) && at(2) < at(1_700_000_000));
    }
}

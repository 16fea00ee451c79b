//! DNS messages, as far as a server for tests needs them (RFC 1035).

use std::net::IpAddr;

/// Response codes.
pub(super) const OK: u8 = 0;
pub(super) const SERVER_FAILURE: u8 = 2;
pub(super) const NAME_ERROR: u8 = 3;

const HEADER_BYTES: usize = 12;
const TYPE_ALIAS: u16 = 5;
const TYPE_AUTHORITY: u16 = 6;
const CLASS_INTERNET: u16 = 1;
const ALIAS_TTL_SECS: u32 = 60;

/// The requested record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    A,
    Aaaa,
    Other,
}

impl Kind {
    pub(super) fn of(address: IpAddr) -> Kind {
        if address.is_ipv4() { Kind::A } else { Kind::Aaaa }
    }

    fn from_code(code: u16) -> Kind {
        match code {
            1 => Kind::A,
            28 => Kind::Aaaa,
            _ => Kind::Other,
        }
    }
}

/// The one question of a message.
pub(super) struct Question<'a> {
    id: [u8; 2],
    /// As received, to be sent back.
    bytes: &'a [u8],
    /// In lower case, without the trailing dot.
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Reads a message with a question.
pub(super) fn read_question(message: &[u8]) -> Option<Question<'_>> {
    let id = [*message.first()?, *message.get(1)?];
    let mut labels = Vec::new();
    let mut at = HEADER_BYTES;
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = message.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
    let code = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
    let bytes = message.get(HEADER_BYTES..at + 4)?;
    Some(Question { id, bytes, name: labels.join("."), kind: Kind::from_code(code) })
}

impl Question<'_> {
    /// An answer, with a record that states how long a negative answer is valid.
    pub(super) fn answer(
        &self,
        code: u8,
        records: &[Record],
        negative_ttl_secs: Option<u32>,
    ) -> Vec<u8> {
        let count = u16::try_from(records.len()).unwrap_or(u16::MAX);
        let authorities = u16::from(negative_ttl_secs.is_some());
        let mut message = self.id.to_vec();
        // A response, recursion desired and available.
        message.extend([0x81, 0x80 | code]);
        for count in [1, count, authorities, 0] {
            message.extend(count.to_be_bytes());
        }
        message.extend(self.bytes);
        records.iter().for_each(|record| record.write(&mut message));
        if let Some(ttl_secs) = negative_ttl_secs {
            Record::authority(&self.name, ttl_secs).write(&mut message);
        }
        message
    }
}

/// One record of an answer.
pub(super) struct Record {
    name: Vec<u8>,
    code: u16,
    ttl_secs: u32,
    data: Vec<u8>,
}

impl Record {
    pub(super) fn address(name: &str, address: IpAddr, ttl_secs: u32) -> Record {
        let (code, data) = match address {
            IpAddr::V4(four) => (1, four.octets().to_vec()),
            IpAddr::V6(six) => (28, six.octets().to_vec()),
        };
        Record { name: encoded(name), code, ttl_secs, data }
    }

    pub(super) fn alias(name: &str, target: &str) -> Record {
        let data = encoded(target);
        Record { name: encoded(name), code: TYPE_ALIAS, ttl_secs: ALIAS_TTL_SECS, data }
    }

    /// A start of authority, whose last field is the TTL of negative answers.
    fn authority(name: &str, ttl_secs: u32) -> Record {
        let mut data = [encoded("ns.test"), encoded("root.ns.test")].concat();
        for field in [1, 3_600, 600, 86_400, ttl_secs] {
            data.extend(field.to_be_bytes());
        }
        Record { name: encoded(name), code: TYPE_AUTHORITY, ttl_secs, data }
    }

    fn write(&self, message: &mut Vec<u8>) {
        let length = u16::try_from(self.data.len()).unwrap_or(u16::MAX);
        message.extend(&self.name);
        message.extend(self.code.to_be_bytes());
        message.extend(CLASS_INTERNET.to_be_bytes());
        message.extend(self.ttl_secs.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend(&self.data);
    }
}

/// The header and question of an answer, marked as truncated.
pub(super) fn truncated(answer: &[u8]) -> Vec<u8> {
    let question_bytes = read_question(answer).map_or(0, |question| question.bytes.len());
    let mut message = answer[..HEADER_BYTES + question_bytes].to_vec();
    message[2] |= 0x02;
    message[6..HEADER_BYTES].fill(0);
    message
}

/// The right ID, followed by nonsense.
pub(super) fn garbage(question: &[u8]) -> Vec<u8> {
    let mut message = question[..2].to_vec();
    message.extend([0xff; 40]);
    message
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

//! Writes WARC/1.1 records.

use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::digest::{labelled_sha1, sha1};
use crate::message::MessageBlock;
use crate::warc::RecordKind;

/// A record to write.
#[derive(Debug, Clone)]
pub struct NewRecord<'a> {
    /// Its type.
    pub kind: RecordKind,
    /// When the capture began: RFC 3339, UTC.
    pub date: &'a str,
    /// The name of the file that begins with this record.
    pub filename: Option<&'a str>,
    /// The captured URL, as a URI.
    pub target_uri: Option<&'a str>,
    /// The address of the server.
    pub ip: Option<IpAddr>,
    /// The protocol of the capture, if it is not that of the block: `h2`.
    pub protocol: Option<&'a str>,
    /// The other record of the same capture.
    pub concurrent_to: Option<&'a RecordId>,
    /// The media type of the block.
    pub content_type: &'a str,
    /// Whether the block was truncated because the capture was too long.
    pub is_cut: bool,
    /// The record's content.
    pub block: Block<'a>,
}

/// The content of a record.
#[derive(Debug, Clone, Copy)]
pub enum Block<'a> {
    /// An HTTP message; its body is the payload.
    Http(&'a MessageBlock),
    /// Anything else.
    Bytes(&'a [u8]),
}

/// The identifier of a record: `<urn:uuid:…>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordId(String);

impl<'a> NewRecord<'a> {
    /// A record with only the mandatory fields.
    #[must_use]
    pub fn new(kind: RecordKind, date: &'a str, content_type: &'a str, block: Block<'a>) -> Self {
        NewRecord {
            kind,
            date,
            filename: None,
            target_uri: None,
            ip: None,
            protocol: None,
            concurrent_to: None,
            content_type,
            is_cut: false,
            block,
        }
    }

    /// Writes the record as a gzip member of its own.
    pub fn write(&self, out: &mut impl Write) -> io::Result<RecordId> {
        let mut member = GzEncoder::new(out, Compression::default());
        let id = self.write_plain(&mut member)?;
        member.finish()?;
        Ok(id)
    }

    /// Writes the record uncompressed.
    pub fn write_plain(&self, out: &mut impl Write) -> io::Result<RecordId> {
        let headers = self.headers();
        let id = RecordId::of(&headers);
        write!(out, "WARC/1.1\r\nWARC-Record-ID: {id}\r\n{headers}\r\n")?;
        out.write_all(self.block.bytes())?;
        out.write_all(b"\r\n\r\n")?;
        Ok(id)
    }

    /// All headers except the record ID.
    fn headers(&self) -> String {
        let block = self.block.bytes();
        let optional = [
            ("WARC-Filename", self.filename.map(str::to_owned)),
            ("WARC-Target-URI", self.target_uri.map(str::to_owned)),
            ("WARC-IP-Address", self.ip.map(|ip| ip.to_string())),
            ("WARC-Protocol", self.protocol.map(str::to_owned)),
            ("WARC-Concurrent-To", self.concurrent_to.map(RecordId::to_string)),
            ("WARC-Truncated", self.is_cut.then(|| "length".to_owned())),
            ("WARC-Payload-Digest", self.payload().map(labelled_sha1)),
        ];
        let mut headers = format!("WARC-Type: {}\r\nWARC-Date: {}\r\n", self.kind, self.date);
        for (name, value) in optional {
            if let Some(value) = value {
                headers.push_str(&format!("{name}: {}\r\n", without_line_ends(&value)));
            }
        }
        headers.push_str(&format!(
            "WARC-Block-Digest: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
            labelled_sha1(block),
            self.content_type,
            block.len()
        ));
        headers
    }

    /// Requests have no body, so only responses have a payload.
    fn payload(&self) -> Option<&'a [u8]> {
        match self.block {
            Block::Http(message) if self.kind == RecordKind::Response => {
                message.bytes.get(message.body_at..)
            }
            _ => None,
        }
    }
}

impl<'a> Block<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Block::Http(message) => &message.bytes,
            Block::Bytes(bytes) => bytes,
        }
    }
}

/// Not one of the well-known namespaces, so that the IDs never collide with those of other programs.
const NAME_SPACE: &[u8] = b"fetchwell record";

impl RecordId {
    /// A version 5 UUID, derived from the record's headers, including its digests and its date. So the same record gets
    /// the same ID, and no random numbers are needed.
    fn of(headers: &str) -> RecordId {
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&sha1(&[NAME_SPACE, headers.as_bytes()].concat())[..16]);
        uuid[6] = uuid[6] & 0x0f | 0x50;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        RecordId(parts.join("-"))
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "<urn:uuid:{}>", self.0)
    }
}

/// Replaces line breaks, so that a value cannot become a second header.
fn without_line_ends(value: &str) -> String {
    value.replace(|c: char| c.is_ascii_control(), " ")
}

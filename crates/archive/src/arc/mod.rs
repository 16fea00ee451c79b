//! ARC records, versions 1 and 2. ARC is the predecessor of WARC.
//!
//! A record is one line, the block, and a line break. The first record describes the file.

pub(crate) mod head;

use std::borrow::Cow;
use std::io::{self, Read};

use crate::format::ArchiveFormat;
use crate::http::{HttpFault, HttpMessage};
use crate::scanner::{RecordScanner, Scanned, ScannedRecord};
use crate::warc::{FilePosition, Flaw, Stretch, Tally, WarcLimits};
use head::ArcHead;

/// A record, borrowing the bytes it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArcRecord<'a> {
    /// Its position.
    pub place: FilePosition,
    /// The captured URL, which may contain spaces.
    pub url: Cow<'a, str>,
    /// When it was captured: `YYYYMMDDhhmmss`, in some files without the seconds.
    pub time: Cow<'a, str>,
    /// The media type that the server declared.
    pub media_type: Cow<'a, str>,
    /// Its content, as far as it is available.
    pub block: &'a [u8],
    /// The error in it, if there is one.
    pub flaw: Option<Flaw>,
}

impl<'a> ArcRecord<'a> {
    /// The block as an HTTP message. Records of other protocols, such as `dns:`, have none.
    pub fn http(&self) -> Result<HttpMessage<'a>, HttpFault> {
        HttpMessage::parse(self.block)
    }
}

/// An item of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum ArcItem<'r> {
    /// A record, possibly with a flaw.
    Record(ArcRecord<'r>),
    /// Bytes that are not a record.
    Malformed(Stretch),
}

/// Reads ARC files: plain, compressed record by record, or compressed as a whole.
///
/// Errors in the file never stop it, as with [`WarcReader`](crate::warc::WarcReader). The record that describes the
/// file is not returned, unless it is damaged.
///
/// ```
/// use fetchwell_archive::arc::{ArcItem, ArcReader};
/// use fetchwell_archive::warc::WarcLimits;
///
/// let file = b"filedesc://a.arc 0.0.0.0 20090101000000 text/plain 2\n1\n\n\
///     http://a.test/ 192.0.2.1 20090101000000 text/html 2\nhi\n";
/// let mut reader = ArcReader::new(file.as_slice(), WarcLimits::default());
/// let Some(ArcItem::Record(record)) = reader.next()? else { panic!("no record") };
/// assert_eq!((record.url.as_ref(), record.block), ("http://a.test/", b"hi".as_slice()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ArcReader<R> {
    scanner: RecordScanner<R>,
}

impl<R: Read> ArcReader<R> {
    pub fn new(read: R, limits: WarcLimits) -> ArcReader<R> {
        ArcReader { scanner: RecordScanner::new(read, limits, ArchiveFormat::Arc) }
    }

    /// The counts so far, including the record that describes the file. The bytes of a record are counted when the
    /// next one is requested.
    pub fn tally(&self) -> Tally {
        self.scanner.tally
    }

    /// The next record or malformed part; `None` at the end. An error means that the file could not be read.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> io::Result<Option<ArcItem<'_>>> {
        let flaw = loop {
            let flaw = match self.scanner.advance()? {
                Some(Scanned::Record(flaw)) => flaw,
                Some(Scanned::Malformed(stretch)) => return Ok(Some(ArcItem::Malformed(stretch))),
                None => return Ok(None),
            };
            self.scanner.tally.count_record(flaw.as_ref(), true);
            let head = ArcHead::parse(self.scanner.record().head);
            if flaw.is_some() || !head.is_ok_and(|head| head.is_file_description()) {
                break flaw;
            }
        };
        let ScannedRecord { place, head, block, .. } = self.scanner.record();
        let Ok(head) = ArcHead::parse(head) else { return Ok(None) };
        let url = String::from_utf8_lossy(head.url);
        let time = String::from_utf8_lossy(head.time);
        let media_type = String::from_utf8_lossy(head.media_type);
        Ok(Some(ArcItem::Record(ArcRecord { place, url, time, media_type, block, flaw })))
    }
}

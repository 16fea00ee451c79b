//! A captured page as a text document.

use std::borrow::Cow;

use fetchwell_archive::cdxj::{CdxRecord, ItemFault};
use fetchwell_archive::gzip::{InflateFault, inflate_member, inflate_pieces};
use fetchwell_archive::warc::{RecordKind, WarcFault, parse_record};
use fetchwell_archive::{BodyFlaw, HttpFault};
use fetchwell_policy::digest::sha256_hex;
use fetchwell_policy::outcome::FetchOutcome;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::in_hand::Part;
use crate::archive::byte_range::{ByteRange, RangeFault};
use crate::read_time::ReadTime;

/// The first bytes of a gzip member. A record may also be stored uncompressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A record or body that inflates to more than this is large.
pub(super) const LARGE_BYTES: usize = 1 << 20;

/// Error kinds that another attempt may fix.
pub const PASSING_KINDS: [&str; 5] = ["unread", "range", "truncated", "gzip", "warc"];
/// Error kinds that remain until the record or the settings change. `item` is in neither list: it cannot be
/// republished.
pub const LASTING_KINDS: [&str; 8] =
    ["too_large", "too_slow", "place", "url", "not_a_response", "http", "body", LEFT_OUT];
/// Kind for pages that failed, were read later, and were then filtered out.
pub(super) const LEFT_OUT: &str = "left_out";

/// A line of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The URL of the page.
    pub url: String,
    /// The URL in SURT form, with its host reversed.
    pub surt: String,
    /// Capture time, `YYYYMMDDhhmmss`.
    pub timestamp: String,
    /// The language from the index, or else the one that the page declares.
    pub lang: Option<String>,
    pub title: String,
    /// The text of the page.
    pub text: String,
    /// The SHA-256 of `text`, in hex.
    pub content_hash: String,
    pub warc: WarcPlace,
    /// Its share of the texts in memory.
    #[serde(skip)]
    pub in_hand: Part,
}

/// The position of a capture in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarcPlace {
    /// The WARC file, relative to the archive's root.
    pub filename: String,
    pub offset: u64,
    pub length: u64,
}

/// Why a capture yields no document.
#[derive(Debug, Error)]
pub(crate) enum DocumentFault {
    #[error("item {number} of {of} in its batch is not a page: {fault}")]
    Item {
        number: usize,
        of: usize,
        #[source]
        fault: ItemFault,
    },
    #[error("the index does not say where the record is")]
    Place,
    #[error("the page has no usable URL")]
    Url,
    #[error(transparent)]
    Range(#[from] RangeFault),
    #[error("the archive did not return its range: {0}")]
    Unread(FetchOutcome),
    #[error(transparent)]
    Inflate(#[from] InflateFault),
    #[error(transparent)]
    Warc(#[from] WarcFault),
    #[error("the record is not a response")]
    NotAResponse,
    #[error(transparent)]
    Http(#[from] HttpFault),
    #[error(transparent)]
    Body(#[from] BodyFlaw),
    #[error("the page is not HTML")]
    NotHtml,
    #[error("{0}")]
    Costly(FetchOutcome),
}

impl DocumentFault {
    /// The kind of error, as a metric label.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            DocumentFault::Item { .. } => "item",
            DocumentFault::Place => "place",
            DocumentFault::Url => "url",
            DocumentFault::Range(_) => "range",
            DocumentFault::Unread(_) => "unread",
            fault if fault.is_about_size() => "too_large",
            DocumentFault::Inflate(InflateFault::Truncated)
            | DocumentFault::Warc(WarcFault::Truncated { .. }) => "truncated",
            DocumentFault::Inflate(_) => "gzip",
            DocumentFault::Warc(_) => "warc",
            DocumentFault::NotAResponse => "not_a_response",
            DocumentFault::Http(_) => "http",
            DocumentFault::Body(_) => "body",
            DocumentFault::NotHtml => "not_html",
            DocumentFault::Costly(_) => "too_slow",
        }
    }

    /// Whether a higher limit might help.
    pub(super) fn is_about_size(&self) -> bool {
        matches!(
            self,
            DocumentFault::Inflate(InflateFault::TooLarge { .. })
                | DocumentFault::Body(BodyFlaw::TooLarge)
        )
    }
}

impl WarcPlace {
    pub(super) fn of(page: &CdxRecord) -> Option<WarcPlace> {
        let filename = page.filename()?.to_owned();
        Some(WarcPlace { filename, offset: page.offset()?, length: page.length()? })
    }

    pub(super) fn range(&self) -> ByteRange {
        ByteRange { offset: self.offset, length: self.length }
    }
}

impl Document {
    /// The document of a capture, from its record.
    pub(crate) fn of_capture(
        page: &CdxRecord,
        record: &[u8],
        max_bytes: usize,
        reading: ReadTime,
    ) -> Result<Document, DocumentFault> {
        let warc = WarcPlace::of(page).ok_or(DocumentFault::Place)?;
        Document::read(page, warc, record, max_bytes, reading)
    }

    /// Extracts, in turn, the WARC record from the gzip member, the HTTP response and the text. None of them may exceed
    /// `max_bytes`.
    pub(super) fn read(
        page: &CdxRecord,
        warc: WarcPlace,
        member: &[u8],
        max_bytes: usize,
        reading: ReadTime,
    ) -> Result<Document, DocumentFault> {
        let bytes = record_bytes(member, max_bytes)?;
        let record = parse_record(&bytes)?;
        if record.kind() != Some(RecordKind::Response) {
            return Err(DocumentFault::NotAResponse);
        }
        let response = record.http()?;
        // With a high limit, measure before allocating; with a low one, decoding stops soon enough.
        if max_bytes > LARGE_BYTES && response.body_exceeds(max_bytes) {
            return Err(BodyFlaw::TooLarge.into());
        }
        let mut scratch = Vec::new();
        let body = response.body(&mut scratch, max_bytes);
        if let Some(flaw @ (BodyFlaw::UnknownEncoding | BodyFlaw::TooLarge)) = body.flaw {
            return Err(flaw.into());
        }
        let content_type = response.headers.get("content-type");
        if !fetchwell_extract::is_html(content_type.as_deref(), body.bytes) {
            return Err(DocumentFault::NotHtml);
        }
        let address = page.url().ok_or(DocumentFault::Url)?;
        let url = url::Url::parse(address).map_err(|_| DocumentFault::Url)?;
        let html = fetchwell_extract::decode(body.bytes, content_type.as_deref()).text;
        let indexed = indexed_language(page);
        let (title, text, declared) =
            read_text(&html, &url, indexed.is_some(), reading).map_err(DocumentFault::Costly)?;
        Ok(Document {
            url: address.to_owned(),
            surt: page.surt_url.clone(),
            timestamp: page.timestamp.clone(),
            lang: indexed.or(declared),
            title,
            content_hash: sha256_hex(text.as_bytes()),
            text,
            warc,
            in_hand: Part::default(),
        })
    }

    /// Fails if a gzip member inflates to more than `max_bytes`. The content is not kept, so a bomb takes no memory.
    pub(super) fn measure(member: &[u8], max_bytes: usize) -> Result<(), DocumentFault> {
        match inflate_pieces(member, max_bytes, |_| ()) {
            Err(fault @ InflateFault::TooLarge { .. }) => Err(fault.into()),
            // Other errors are reported when the record is read.
            _ => Ok(()),
        }
    }
}

/// Whether the bytes begin like a record, valid or not: web archives contain nothing else.
pub(super) fn is_record(stored: &[u8]) -> bool {
    stored.starts_with(&GZIP) || stored.starts_with(b"WARC/")
}

/// The bytes of a record, at most `max_bytes`: the content of its gzip member, or the bytes as stored.
pub(crate) fn record_bytes(
    stored: &[u8],
    max_bytes: usize,
) -> Result<Cow<'_, [u8]>, DocumentFault> {
    if stored.starts_with(&GZIP) {
        return Ok(Cow::Owned(inflate_member(stored, max_bytes)?));
    }
    if stored.len() > max_bytes {
        return Err(BodyFlaw::TooLarge.into());
    }
    Ok(Cow::Borrowed(stored))
}

type TitleTextLanguage = (String, String, Option<String>);

/// Title, text, and the language if the index has none: detecting it costs more.
fn read_text(
    html: &str,
    url: &url::Url,
    has_language: bool,
    reading: ReadTime,
) -> Result<TitleTextLanguage, FetchOutcome> {
    if has_language {
        let article = reading.text(html, url)?;
        return Ok((article.title, article.text, None));
    }
    let article = reading.article(html, url)?;
    Ok((article.title, article.text, article.lang))
}

/// The first language of the index: the one with most of the page.
fn indexed_language(page: &CdxRecord) -> Option<String> {
    let codes = page.metadata.get("languages")?;
    codes.split(',').map(str::trim).find(|code| !code.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_that_can_be_published_again_can_be_named() {
        for fault in [
            DocumentFault::Place,
            DocumentFault::Url,
            DocumentFault::Range(RangeFault::Status(200)),
            DocumentFault::Unread(FetchOutcome::Answered(404)),
            DocumentFault::Inflate(InflateFault::Truncated),
            DocumentFault::Inflate(inflate_member(b"plain text, no gzip", 9).unwrap_err()),
            DocumentFault::Body(BodyFlaw::TooLarge),
            DocumentFault::Body(BodyFlaw::UnknownEncoding),
            DocumentFault::NotAResponse,
            DocumentFault::Costly(FetchOutcome::Answered(200)),
        ] {
            let kind = fault.kind();
            let is_passing = PASSING_KINDS.contains(&kind);
            assert_ne!(is_passing, LASTING_KINDS.contains(&kind), "{kind}");
        }
    }
}

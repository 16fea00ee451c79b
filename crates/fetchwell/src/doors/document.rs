//! A captured page as a text document.

use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_archive::gzip::{InflateFault, inflate_member};
use fetchwell_archive::warc::{WarcFault, parse_record};
use fetchwell_archive::{BodyFlaw, HttpFault, HttpMessage};
use fetchwell_engine::web::Answer;
use serde::Serialize;
use thiserror::Error;

use super::notation::sha256_hex;
use super::ranged::{ByteRange, RangeFault};

/// Common Crawl cuts pages at 1 MiB; other archives at more, none at this.
const MAX_RECORD_BYTES: usize = 64 * 1024 * 1024;

/// A line of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Document {
    /// The page's own address.
    pub url: String,
    /// The same with its host reversed.
    pub surt: String,
    /// When it was captured, `YYYYMMDDhhmmss`.
    pub timestamp: String,
    /// The language that the index found, else the one that the page declares.
    pub lang: Option<String>,
    /// The headline.
    pub title: String,
    /// What the page says.
    pub text: String,
    /// The SHA-256 of `text`, in hex.
    pub content_hash: String,
    /// Where the capture is.
    pub warc: WarcPlace,
}

/// Where in the archive a capture is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WarcPlace {
    /// The WARC file, below the archive's root.
    pub filename: String,
    /// Where in it the record begins, in bytes.
    pub offset: u64,
    /// How long the record is, in bytes.
    pub length: u64,
}

/// Why a capture gives no document.
#[derive(Debug, Error)]
pub(crate) enum DocumentFault {
    #[error("the index does not say where the record is")]
    Place,
    #[error("the page has no address that can be used")]
    Url,
    #[error(transparent)]
    Range(#[from] RangeFault),
    #[error(transparent)]
    Inflate(#[from] InflateFault),
    #[error(transparent)]
    Warc(#[from] WarcFault),
    #[error(transparent)]
    Http(#[from] HttpFault),
    #[error(transparent)]
    Body(#[from] BodyFlaw),
    #[error("the page is not HTML")]
    NotHtml,
}

impl WarcPlace {
    pub(crate) fn of(page: &CdxRecord) -> Result<WarcPlace, DocumentFault> {
        let place = || {
            let filename = page.filename()?.to_owned();
            Some(WarcPlace { filename, offset: page.offset()?, length: page.length()? })
        };
        place().ok_or(DocumentFault::Place)
    }

    pub(crate) fn range(&self) -> ByteRange {
        ByteRange { offset: self.offset, length: self.length }
    }
}

impl Document {
    /// Range, gzip member, WARC record, HTTP response, text: each is taken from the one before.
    pub(crate) fn read(page: &CdxRecord, answer: &Answer) -> Result<Document, DocumentFault> {
        let warc = WarcPlace::of(page)?;
        let member = warc.range().of(answer)?;
        let bytes = inflate_member(member, MAX_RECORD_BYTES)?;
        let record = parse_record(&bytes)?;
        Document::of(page, warc, &record.http()?)
    }

    fn of(
        page: &CdxRecord,
        warc: WarcPlace,
        response: &HttpMessage<'_>,
    ) -> Result<Document, DocumentFault> {
        let mut scratch = Vec::new();
        let body = response.body(&mut scratch, MAX_RECORD_BYTES);
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
        let article = fetchwell_extract::extract(&html, &url);
        let languages = page.metadata.get("languages");
        let indexed = languages.and_then(|codes| codes.split(',').next()).map(str::to_owned);
        Ok(Document {
            url: address.to_owned(),
            surt: page.surt_url.clone(),
            timestamp: page.timestamp.clone(),
            lang: indexed.or(article.lang),
            title: article.title,
            content_hash: sha256_hex(article.text.as_bytes()),
            text: article.text,
            warc,
        })
    }
}

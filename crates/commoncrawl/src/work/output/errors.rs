//! Reads `errors.jsonl`, the pages that could not be read, without a lock, up to the length confirmed in the manifest.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::Path;

use fetchwell_archive::cdxj::CdxRecord;
use rusqlite::{Connection, OptionalExtension};

use super::ERRORS;
use super::manifest::{confirmed_bytes, open_to_read};
use crate::error::CommonCrawlError;
use crate::work::document::{LEFT_OUT, WarcPlace};
use crate::work::record::BrokenPage;

/// The error kind of an item that is not a page. Publishing it again would not help.
const NO_PAGE: &str = "item";

/// The file, and the manifest that records which of its pages were read since.
pub struct ErrorFile {
    manifest: Connection,
    lines: Option<BufReader<Take<File>>>,
}

/// What a line means now.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum ErrorEntry {
    /// A page without a document, with its kind of error or [`LEFT_OUT`].
    Page(CdxRecord, String),
    /// The page has a document by now.
    Read,
    /// The line does not name a record that could be read.
    Nowhere,
    /// The line is not valid.
    Garbage,
}

impl ErrorFile {
    pub fn open(folder: &Path) -> Result<ErrorFile, CommonCrawlError> {
        let at = folder.to_owned();
        let manifest = open_to_read(folder)
            .map_err(|source| CommonCrawlError::NoWorker { folder: at.clone(), source })?;
        let confirmed = confirmed_bytes(&manifest, ERRORS)
            .map_err(|source| CommonCrawlError::Manifest { folder: at.clone(), source })?;
        let lines = match File::open(folder.join(ERRORS)) {
            Ok(file) => Some(BufReader::new(file.take(confirmed))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && confirmed == 0 => None,
            Err(source) => return Err(CommonCrawlError::ErrorFile { folder: at, source }),
        };
        Ok(ErrorFile { manifest, lines })
    }

    pub(in super::super) fn read_next(&mut self) -> io::Result<Option<ErrorEntry>> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let Ok(line) = serde_json::from_slice::<BrokenPage>(&line) else {
            return Ok(Some(ErrorEntry::Garbage));
        };
        let place = line.warc.as_ref().filter(|_| line.kind != NO_PAGE);
        let Some(place) = place else { return Ok(Some(ErrorEntry::Nowhere)) };
        let kind = match self.is_broken(place).map_err(io::Error::other)? {
            Some(true) => line.kind.to_string(),
            Some(false) => return Ok(Some(ErrorEntry::Read)),
            None => LEFT_OUT.to_owned(),
        };
        Ok(Some(ErrorEntry::Page(line.record(), kind)))
    }

    /// `None` for a page that has been read since then, and was filtered out.
    fn is_broken(&self, place: &WarcPlace) -> rusqlite::Result<Option<bool>> {
        self.manifest
            .prepare_cached(
                "SELECT is_broken FROM page JOIN file ON file.id = page.file
                 WHERE file.name = ?1 AND page.offset = ?2",
            )?
            .query_row((&place.filename, place.offset), |row| row.get(0))
            .optional()
    }
}

impl BrokenPage {
    /// The page as its batch had it; for lines of earlier versions, only what is needed to read it.
    fn record(self) -> CdxRecord {
        let mut metadata = self.metadata;
        if metadata.is_empty()
            && let Some(WarcPlace { filename, offset, length }) = self.warc
        {
            metadata.extend(self.url.map(|url| ("url".to_owned(), url)));
            metadata.insert("filename".to_owned(), filename);
            metadata.insert("offset".to_owned(), offset.to_string());
            metadata.insert("length".to_owned(), length.to_string());
        }
        CdxRecord { surt_url: self.surt, timestamp: self.timestamp, metadata }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_an_earlier_version_has_enough_to_be_read_again() {
        let line = r#"{"url":"https://example.com/","surt":"com,example)/","timestamp":"20240712000102",
            "warc":{"filename":"a/b.warc.gz","offset":7,"length":9},"kind":"range","reason":"…"}"#;
        let record = serde_json::from_str::<BrokenPage>(line).unwrap().record();
        assert_eq!(record.filename(), Some("a/b.warc.gz"));
        assert_eq!((record.offset(), record.length()), (Some(7), Some(9)));
        assert_eq!(record.url(), Some("https://example.com/"));
    }
}

//! An archive that a test makes, and the batches that name its pages.

use std::collections::BTreeMap;
use std::io::Write;

use bytes::Bytes;
use fetchwell_archive::message;
use fetchwell_archive::warc::RecordKind;
use fetchwell_archive::warc_writer::{Block, NewRecord};
use fetchwell_engine::ports::batches::Batch;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// WARC files, and an element of a batch for each page in them.
#[derive(Default)]
pub(crate) struct TestArchive {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) pages: Vec<Value>,
}

impl TestArchive {
    /// So many files of so many pages, each of which says its number.
    pub(crate) fn of(files: usize, pages_per_file: usize) -> TestArchive {
        let mut archive = TestArchive::default();
        for file in 0..files {
            for page in 0..pages_per_file {
                let number = file * pages_per_file + page;
                archive.add(&format!("crawl-data/{file}.warc.gz"), &record(number, &html(number)));
            }
        }
        archive
    }

    /// Puts bytes at the end of a file, and names them as a page.
    pub(crate) fn add(&mut self, file: &str, bytes: &[u8]) {
        let number = self.pages.len();
        let content = self.files.entry(file.to_owned()).or_default();
        self.pages.push(json!({
            "surt_url": format!("com,example)/{number}"),
            "timestamp": "20240712000102",
            "metadata": {
                "url": url(number), "mime": "text/html", "status": "200", "languages": "eng",
                "filename": file, "offset": content.len().to_string(),
                "length": bytes.len().to_string(),
            },
        }));
        content.extend_from_slice(bytes);
    }

    /// All pages, in batches of this size.
    pub(crate) fn batches(&self, size: usize) -> Vec<Batch> {
        let batch = |(number, pages): (usize, &[Value])| Batch {
            id: format!("batch-{number}"),
            body: Bytes::from(serde_json::to_vec(pages).unwrap()),
        };
        self.pages.chunks(size).enumerate().map(batch).collect()
    }
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    member.write_all(content).unwrap();
    member.finish().unwrap()
}

pub(crate) fn url(number: usize) -> String {
    format!("https://example.com/{number}")
}

/// What the text of such a page is.
pub(crate) fn text(number: usize) -> String {
    format!("This is what page {number} says, and it says it in a sentence of some length.")
}

pub(crate) fn html(number: usize) -> Vec<u8> {
    let text = text(number);
    format!("<html lang=\"en\"><title>Page {number}</title><p>{text}</p></html>").into_bytes()
}

/// A capture of a page, as a gzip member.
pub(crate) fn record(number: usize, body: &[u8]) -> Vec<u8> {
    response(number, 200, "text/html; charset=utf-8", body)
}

/// A capture of whatever it is, as a gzip member.
pub(crate) fn response(number: usize, status: u16, content_type: &str, body: &[u8]) -> Vec<u8> {
    let headers = [("Content-Type", content_type.as_bytes())];
    let message = message::response(status, "OK", headers, body);
    let url = url(number);
    let mut record = NewRecord::new(
        RecordKind::Response,
        "2024-07-12T00:01:02Z",
        "application/http; msgtype=response",
        Block::Http(&message),
    );
    record.target_uri = Some(&url);
    let mut bytes = Vec::new();
    record.write(&mut bytes).unwrap();
    bytes
}

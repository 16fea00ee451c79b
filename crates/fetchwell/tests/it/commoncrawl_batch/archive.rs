//! An archive that a test makes: WARC files, the blocks of their index, and `cluster.idx`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use fetchwell_archive::message;
use fetchwell_archive::warc::RecordKind;
use fetchwell_archive::warc_writer::{Block, NewRecord};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

pub(crate) const CRAWL: &str = "CC-TEST-2024-30";
const INDEXES: &str = "cc-index/collections/CC-TEST-2024-30/indexes";

/// Files by their names below the root.
#[derive(Default)]
pub(crate) struct TestArchive {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// `cluster.idx` so far.
    pub(crate) index: String,
    blocks: usize,
    pages: usize,
}

/// A page of an archive.
pub(crate) struct TestPage {
    pub(crate) path: String,
    pub(crate) timestamp: &'static str,
    pub(crate) fields: Vec<(&'static str, Value)>,
}

/// A page with these languages.
pub(crate) fn page(path: impl Into<String>, languages: Option<&str>) -> TestPage {
    let fields = languages.map(|codes| ("languages", json!(codes))).into_iter().collect();
    TestPage { path: path.into(), timestamp: "20240712000102", fields }
}

impl TestArchive {
    /// So many blocks of so many English pages; each goes to one of three WARC files in turn.
    pub(crate) fn of(blocks: usize, pages_per_block: usize) -> TestArchive {
        let mut archive = TestArchive::default();
        for block in 0..blocks {
            let pages = (0..pages_per_block)
                .map(|number| page(format!("{block:05}/{number:05}"), Some("eng")));
            archive.add_block(&pages.collect::<Vec<_>>());
        }
        archive
    }

    /// Writes pages into WARC files, and a block of the index about them.
    pub(crate) fn add_block(&mut self, pages: &[TestPage]) {
        let lines: Vec<String> = pages.iter().map(|page| self.capture(page)).collect();
        let key = format!("com,example)/{} {}", pages[0].path, pages[0].timestamp);
        self.add_raw_block(&key, &gzip(lines.concat().as_bytes()));
    }

    /// Puts bytes where a block should be.
    pub(crate) fn add_raw_block(&mut self, key: &str, bytes: &[u8]) {
        let name = format!("cdx-{:05}.gz", self.blocks / 4);
        let file = self.files.entry(format!("{INDEXES}/{name}")).or_default();
        let offset = file.len();
        let length = bytes.len();
        file.extend_from_slice(bytes);
        self.blocks += 1;
        let line = format!("{key}\t{name}\t{offset}\t{length}\t{}\n", self.blocks);
        self.index.push_str(&line);
    }

    fn capture(&mut self, page: &TestPage) -> String {
        let name = format!("crawl-data/{}.warc.gz", self.pages % 3);
        self.pages += 1;
        let url = format!("https://example.com/{}", page.path);
        let record = record(&url, &page.path);
        let file = self.files.entry(name.clone()).or_default();
        let mut metadata = Map::new();
        metadata.insert("url".to_owned(), json!(url));
        metadata.insert("mime".to_owned(), json!("text/html"));
        metadata.insert("status".to_owned(), json!("200"));
        metadata.insert("length".to_owned(), json!(record.len().to_string()));
        metadata.insert("offset".to_owned(), json!(file.len().to_string()));
        metadata.insert("filename".to_owned(), json!(name));
        for (name, value) in &page.fields {
            metadata.insert((*name).to_owned(), value.clone());
        }
        file.extend_from_slice(&record);
        let metadata = Value::Object(metadata);
        format!("com,example)/{} {} {metadata}\n", page.path, page.timestamp)
    }

    /// All files, with `cluster.idx` where it belongs.
    pub(crate) fn all_files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.files.clone();
        files.insert(format!("{INDEXES}/cluster.idx"), self.index.clone().into_bytes());
        files
    }

    /// Puts all of it into a folder.
    pub(crate) fn write(&self, folder: &Path) {
        for (name, content) in self.all_files() {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    member.write_all(content).unwrap();
    member.finish().unwrap()
}

/// A capture of a page that says its name, as a gzip member.
fn record(url: &str, name: &str) -> Vec<u8> {
    let html = format!(
        "<html lang=\"en\"><title>Page {name}</title><article><h1>Page {name}</h1>\
         <p>This is what page {name} says, and it says it in a sentence.</p></article></html>"
    );
    let headers = [("Content-Type", b"text/html; charset=utf-8".as_slice())];
    let message = message::response(200, "OK", headers, html.as_bytes());
    let mut record = NewRecord::new(
        RecordKind::Response,
        "2024-07-12T00:01:02Z",
        "application/http; msgtype=response",
        Block::Http(&message),
    );
    record.target_uri = Some(url);
    let mut bytes = Vec::new();
    record.write(&mut bytes).unwrap();
    bytes
}

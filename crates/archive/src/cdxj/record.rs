//! A captured page, as the consumer of a batch receives it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::line::CdxLine;
use crate::line::{LineFault, is_plain_name, is_range, number};

/// The longest WARC record (compressed) that is requested; those of Common Crawl have a few MiB at most.
pub const MAX_RECORD_BYTES: u64 = 128 * 1024 * 1024;

/// A captured page, in the format of batches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdxRecord {
    /// The page's URL with its host reversed (`com,example)/path`).
    pub surt_url: String,
    /// When the page was captured, `YYYYMMDDhhmmss`.
    pub timestamp: String,
    /// The metadata of the line. Values that are not strings are kept as JSON text.
    pub metadata: BTreeMap<String, String>,
}

/// Parses `SURT TIMESTAMP {JSON}`.
pub fn parse_line(line: &str) -> Result<CdxRecord, LineFault> {
    CdxLine::parse(line.as_bytes()).map(|line| CdxRecord::from(&line))
}

impl From<&CdxLine<'_>> for CdxRecord {
    fn from(line: &CdxLine<'_>) -> CdxRecord {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        CdxRecord {
            surt_url: line.surt.to_owned(),
            timestamp: line.timestamp.to_owned(),
            metadata: line.metadata().into_iter().map(owned).collect(),
        }
    }
}

impl CdxRecord {
    /// The page's URL.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.value("url")
    }

    /// The WARC file, a relative path of plain names; `None` if it is missing or could lead outside of the folder.
    #[must_use]
    pub fn filename(&self) -> Option<&str> {
        self.value("filename").filter(|path| path.split('/').all(is_plain_name))
    }

    /// The offset of the record in the WARC file, in bytes.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        number(self.value("offset")?)
    }

    /// The length of the record in bytes: 1 to [`MAX_RECORD_BYTES`], and only if the range can be requested.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        let offset = self.offset()?;
        number(self.value("length")?).filter(|length| is_range(offset, *length, MAX_RECORD_BYTES))
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"com,example)/a 20240712000102 {"url": "https://example.com/a", "mime": "text/html", "status": "200", "length": "1023", "offset": 77, "filename": "crawl-data/CC-MAIN-2024-30/x.warc.gz", "languages": "zho,eng"}"#;

    #[test]
    fn a_line_is_parsed() {
        let record = parse_line(LINE).unwrap();
        assert_eq!(record.surt_url, "com,example)/a");
        assert_eq!(record.url(), Some("https://example.com/a"));
        assert_eq!((record.offset(), record.length()), (Some(77), Some(1023)));
        assert_eq!(record.filename(), Some("crawl-data/CC-MAIN-2024-30/x.warc.gz"));
    }

    #[test]
    fn a_batch_carries_exactly_three_fields() {
        let record = parse_line(r#"a)/ 20240712000102 {"b":"ü","a":7,"c":null}"#).unwrap();
        let json = serde_json::to_string(&record).unwrap();
        let want = r#"{"surt_url":"a)/","timestamp":"20240712000102","metadata":{"a":"7","b":"ü","c":"null"}}"#;
        assert_eq!(json, want);
        assert_eq!(serde_json::from_str::<CdxRecord>(&json).unwrap(), record);
    }

    #[test]
    fn faults_are_named() {
        assert_eq!(parse_line(""), Err(LineFault::Missing("surt")));
        assert_eq!(parse_line("a"), Err(LineFault::Missing("timestamp")));
        assert_eq!(parse_line("a 2024 {}"), Err(LineFault::Timestamp));
        assert_eq!(parse_line("a 20240712000102"), Err(LineFault::Missing("metadata")));
        for json in ["[]", "{", "{} {}", "7", &"[".repeat(10_000), r#"{"a":"\uD800"}"#] {
            let fault = parse_line(&format!("a 20240712000102 {json}"));
            assert!(matches!(fault, Err(LineFault::Json(_))), "{json}");
        }
    }

    #[test]
    fn what_could_lead_elsewhere_is_not_given() {
        for (key, value) in [
            ("filename", "../secret"),
            ("filename", "/etc/passwd"),
            ("filename", "a//b"),
            ("filename", "https://other.test/x"),
            ("filename", "a?b"),
            ("length", "0"),
            ("length", "99999999999"),
            ("length", "-1"),
        ] {
            let json = format!(r#"a 20240712000102 {{"offset":"1","{key}":"{value}"}}"#);
            let record = parse_line(&json).unwrap();
            assert_eq!(record.filename(), None, "{value}");
            assert_eq!(record.length(), None, "{value}");
        }
    }
}

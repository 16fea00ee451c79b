//! What became of each record of a sample.

use std::fs::File;
use std::path::Path;

use anyhow::Result;
use fetchwell_archive::warc::{Record, WarcItem, WarcLimits, WarcReader};
use serde_json::json;
use sha1::{Digest, Sha1};

const MAX_BODY_BYTES: usize = 64 << 20;

/// A line a record with its type, address and the SHA-1 of its body (`null` for what is no record);
/// the counts last.
pub(crate) fn told(file: &Path) -> Result<String> {
    let mut reader = WarcReader::new(File::open(file)?, WarcLimits::default());
    let mut lines = Vec::new();
    let mut scratch = Vec::new();
    while let Some(item) = reader.next()? {
        lines.push(match item {
            WarcItem::Record(record) => told_record(&record, &mut scratch),
            WarcItem::Malformed(_) => json!(null).to_string(),
        });
    }
    let tally = reader.tally();
    lines.push(json!([tally.ok, tally.truncated, tally.malformed, tally.skipped]).to_string());
    Ok(lines.join("\n"))
}

fn told_record(record: &Record<'_>, scratch: &mut Vec<u8>) -> String {
    let body = record.http().map(|message| message.body(scratch, MAX_BODY_BYTES).bytes);
    let body = body.unwrap_or(record.block);
    let kind = record.headers.get("WARC-Type");
    let hash: String = Sha1::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    json!([kind, record.target_uri(), body.len(), hash]).to_string()
}

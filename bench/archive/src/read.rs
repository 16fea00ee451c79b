//! An archive, up to the body of each HTTP message.

use std::fs::File;
use std::path::Path;

use anyhow::{Result, ensure};
use fetchwell_archive::warc::{RecordKind, WarcItem, WarcLimits, WarcReader};

const MAX_BODY_BYTES: usize = 64 << 20;

/// Says how many records and bytes of bodies there are, as the peers do.
pub(crate) fn warc(file: &Path) -> Result<String> {
    let mut reader = WarcReader::new(File::open(file)?, WarcLimits::default());
    let mut records = 0_u64;
    let mut bodies = 0_u64;
    let mut body_bytes = 0_u64;
    let mut scratch = Vec::new();
    while let Some(item) = reader.next()? {
        let WarcItem::Record(record) = item else { continue };
        records += 1;
        if record.kind() == Some(RecordKind::Response)
            && let Ok(message) = record.http()
        {
            bodies += 1;
            body_bytes += message.body(&mut scratch, MAX_BODY_BYTES).bytes.len() as u64;
        }
    }
    ensure!(reader.tally().malformed == 0, "a made archive is sound: {:?}", reader.tally());
    Ok(format!("{records} records, {bodies} bodies, {body_bytes} bytes"))
}

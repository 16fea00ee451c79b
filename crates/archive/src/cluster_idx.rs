//! `cluster.idx`: where each block of about 3,000 CDX lines stands.

use crate::line::{LineFault, bounded, is_plain_name, is_range, number, surt, timestamp};

/// The longest block that is asked for; Common Crawl's have about 200 KiB.
pub const MAX_BLOCK_BYTES: u64 = 64 * 1024 * 1024;

/// A block of CDX lines: one gzip member of a CDX file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterEntry {
    /// The SURT of the block's first line.
    pub surt: String,
    /// Its timestamp, `YYYYMMDDhhmmss`.
    pub timestamp: String,
    /// The CDX file, a plain name (`cdx-00000.gz`).
    pub cdx_file: String,
    /// Where in it the member begins, in bytes.
    pub offset: u64,
    /// How long the member is, in bytes: 1 to [`MAX_BLOCK_BYTES`].
    pub length: u64,
    /// The block's number in `cluster.idx`.
    pub line: u64,
}

/// Parses `SURT TIMESTAMP⇥FILE⇥OFFSET⇥LENGTH⇥NUMBER`.
pub fn parse_line(line: &str) -> Result<ClusterEntry, LineFault> {
    let mut fields = bounded(line)?.split('\t');
    let mut next = |name| fields.next().filter(|f| !f.is_empty()).ok_or(LineFault::Missing(name));
    let key = next("surt")?;
    let cdx_file = next("cdx_file")?;
    let offset = next("offset")?;
    let length = next("length")?;
    let line = next("line")?;
    if fields.next().is_some() {
        return Err(LineFault::TooManyFields);
    }
    let (first_surt, first_timestamp) =
        key.rsplit_once(' ').ok_or(LineFault::Missing("timestamp"))?;
    let offset = number(offset).ok_or(LineFault::Number("offset"))?;
    let length = number(length)
        .filter(|length| is_range(offset, *length, MAX_BLOCK_BYTES))
        .ok_or(LineFault::Number("length"))?;
    if !is_plain_name(cdx_file) {
        return Err(LineFault::FileName);
    }
    Ok(ClusterEntry {
        surt: surt(first_surt)?,
        timestamp: timestamp(first_timestamp)?,
        cdx_file: cdx_file.to_owned(),
        offset,
        length,
        line: number(line).ok_or(LineFault::Number("line"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed() {
        let line = "com,example)/a?b=c 20240712000102\tcdx-00007.gz\t188224\t190001\t42\n";
        let want = ClusterEntry {
            surt: "com,example)/a?b=c".into(),
            timestamp: "20240712000102".into(),
            cdx_file: "cdx-00007.gz".into(),
            offset: 188_224,
            length: 190_001,
            line: 42,
        };
        assert_eq!(parse_line(line), Ok(want));
    }

    #[test]
    fn faults_are_named() {
        let key = "com,example)/ 20240712000102";
        for (line, want) in [
            (String::new(), LineFault::Missing("surt")),
            (key.to_owned(), LineFault::Missing("cdx_file")),
            (format!("{key}\tcdx.gz\t1\t2"), LineFault::Missing("line")),
            (format!("{key}\tcdx.gz\t1\t2\t3\t4"), LineFault::TooManyFields),
            (format!("{key}\t../cdx.gz\t1\t2\t3"), LineFault::FileName),
            (format!("{key}\t..\t1\t2\t3"), LineFault::FileName),
            (format!("{key}\tcdx.gz\t-1\t2\t3"), LineFault::Number("offset")),
            (format!("{key}\tcdx.gz\t1\t0\t3"), LineFault::Number("length")),
            (format!("{key}\tcdx.gz\t1\t99999999999\t3"), LineFault::Number("length")),
            (format!("{key}\tcdx.gz\t{}\t2\t3", u64::MAX), LineFault::Number("length")),
            (format!("{key}\tcdx.gz\t1\t2\tx"), LineFault::Number("line")),
            ("com,example)/ 2024\tcdx.gz\t1\t2\t3".to_owned(), LineFault::Timestamp),
            ("com,example)/\tcdx.gz\t1\t2\t3".to_owned(), LineFault::Missing("timestamp")),
            ("x".repeat(70_000), LineFault::TooLong { bytes: 70_000 }),
        ] {
            assert_eq!(parse_line(&line), Err(want), "{}", line.get(..80).unwrap_or(&line));
        }
    }
}

//! `cluster.idx`: the positions of the blocks of about 3,000 CDX lines each.

use std::fmt;
use std::io::{self, BufRead, Read};

use crate::line::{LineFault, MAX_LINE_BYTES, bounded, is_plain_name, is_range, number, timestamp};

/// The longest block that is requested; those of Common Crawl have about 200 KiB.
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
    /// The offset of the member in that file, in bytes.
    pub offset: u64,
    /// The length of the member in bytes: 1 to [`MAX_BLOCK_BYTES`].
    pub length: u64,
    /// The block's number in `cluster.idx`.
    pub line: u64,
}

/// Writes the line in its original format.
impl fmt::Display for ClusterEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterEntry { surt, timestamp, cdx_file, offset, length, line } = self;
        write!(out, "{surt} {timestamp}\t{cdx_file}\t{offset}\t{length}\t{line}")
    }
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
        surt: Some(first_surt)
            .filter(|s| !s.is_empty())
            .ok_or(LineFault::Missing("surt"))?
            .to_owned(),
        timestamp: timestamp(first_timestamp)?.to_owned(),
        cdx_file: cdx_file.to_owned(),
        offset,
        length,
        line: number(line).ok_or(LineFault::Number("line"))?,
    })
}

/// Reads the lines of a `cluster.idx` one by one, because the file has more than a million.
pub struct Lines<R> {
    file: R,
    offset: u64,
    line: Vec<u8>,
}

/// A line and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLine {
    /// The offset of the line in the file; to resume here, skip that many bytes.
    pub offset: u64,
    /// The offset of the line's end.
    pub end: u64,
    /// The parsed line.
    pub entry: Result<ClusterEntry, LineFault>,
}

impl<R: BufRead> Lines<R> {
    /// Reads a file from its beginning.
    pub fn new(file: R) -> Lines<R> {
        Lines::after(file, 0)
    }

    /// Reads a file whose first `offset` bytes have already been read.
    pub fn after(file: R, offset: u64) -> Lines<R> {
        Lines { file, offset, line: Vec::new() }
    }

    fn read(&mut self) -> io::Result<Option<IndexLine>> {
        self.line.clear();
        let offset = self.offset;
        let one_too_many = MAX_LINE_BYTES as u64 + 2;
        let mut bytes = (&mut self.file).take(one_too_many).read_until(b'\n', &mut self.line)?;
        if bytes == 0 {
            return Ok(None);
        }
        if !self.line.ends_with(b"\n") {
            // The rest of an overlong line is not kept in memory.
            bytes += self.file.skip_until(b'\n')?;
        }
        self.offset += bytes as u64;
        let entry = if bytes > self.line.len() {
            Err(LineFault::TooLong { bytes })
        } else {
            str::from_utf8(&self.line).map_err(|_| LineFault::Encoding).and_then(parse_line)
        };
        Ok(Some(IndexLine { offset, end: self.offset, entry }))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<IndexLine>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_line_by_line_whatever_some_are() {
        let line = "com,example)/ 20240712000102\tcdx-00007.gz\t1\t2\t3\n";
        let file = [
            line.as_bytes(),
            &b"x".repeat(200_000),
            b"\n\xff\n\n",
            line.as_bytes(),
            line.trim_end().as_bytes(),
        ]
        .concat();
        let lines: Vec<IndexLine> = Lines::new(&file[..]).map(Result::unwrap).collect();
        let entries: Vec<_> = lines.iter().map(|line| line.entry.clone()).collect();
        let entry = parse_line(line);
        let want = [
            entry.clone(),
            Err(LineFault::TooLong { bytes: 200_001 }),
            Err(LineFault::Encoding),
            Err(LineFault::Missing("surt")),
            entry.clone(),
            entry,
        ];
        assert_eq!(entries, want);
        for (number, line) in lines.iter().enumerate() {
            let rest = &file[usize::try_from(line.offset).unwrap()..];
            let again = Lines::after(rest, line.offset).map(Result::unwrap);
            assert_eq!(again.collect::<Vec<_>>(), lines[number..]);
        }
    }

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
        assert_eq!(want.to_string(), line.trim_end());
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

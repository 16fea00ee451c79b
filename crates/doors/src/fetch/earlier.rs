//! Reads the results of earlier runs from an output file.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::ops::Range;
use std::path::Path;

use fetchwell_archive::gzip::{MemberError, next_member};
use fetchwell_archive::warc::{RecordKind, parse_record};
use serde::Deserialize;

use super::capture::SOFTWARE;
use super::format::OutputFormat;
use super::row::RowOutcome;

/// Records with a row are shorter; longer ones are kept in memory only up to this size.
const MAX_ROW_BYTES: u64 = 4 << 20;

/// Reads the next result, of at most this many bytes. `None`: what follows is not a complete result of this program.
type NextResult = fn(&mut BufReader<File>, u64) -> io::Result<Option<Part>>;

/// Reads the results in an output file one by one. It holds one result in memory at a time.
#[derive(Debug)]
pub struct EarlierRows {
    file: BufReader<File>,
    next: NextResult,
    /// The first byte of every file in this format.
    first_byte: u8,
    read: u64,
}

/// A result in an output file.
#[derive(Debug, PartialEq, Eq)]
pub struct EarlierRow {
    pub url: String,
    pub outcome: RowOutcome,
    /// Whether the URL was given up because of an internal error.
    pub is_internal: bool,
    /// Its place in the file.
    pub bytes: Range<u64>,
}

impl EarlierRows {
    /// Opens a file, without reading it yet.
    pub fn open(path: &Path, format: OutputFormat) -> io::Result<EarlierRows> {
        let file = BufReader::new(File::open(path)?);
        let (next, first_byte): (NextResult, u8) = match format {
            OutputFormat::Warc => (next_capture, 0x1f),
            _ => (next_line, b'{'),
        };
        Ok(EarlierRows { file, next, first_byte, read: 0 })
    }

    /// Whether the file starts with a byte that this format never starts with.
    pub fn is_of_another_format(&mut self) -> io::Result<bool> {
        self.file.rewind()?;
        Ok(self.file.fill_buf()?.first().is_some_and(|byte| *byte != self.first_byte))
    }

    /// The next result within the first `trusted` bytes. `None`: what follows is not a complete result of this program.
    pub fn next(&mut self, trusted: u64) -> io::Result<Option<EarlierRow>> {
        while self.read < trusted {
            let Some(part) = (self.next)(&mut self.file, trusted - self.read)? else { break };
            let start = self.read;
            self.read += part.bytes;
            if let Some(row) = part.row {
                let is_internal = row.is_internal();
                let Seen { url, outcome, .. } = row;
                return Ok(Some(EarlierRow { url, outcome, is_internal, bytes: start..self.read }));
            }
        }
        Ok(None)
    }

    /// Where the last complete result ends, as far as the file has been read.
    pub fn end(&self) -> u64 {
        self.read
    }
}

/// The URLs that have a row in an output file, as far as it has been read.
#[derive(Debug)]
pub struct Earlier {
    rows: EarlierRows,
    urls: HashSet<String>,
    /// The outcome of each row that was read.
    pub outcomes: Vec<RowOutcome>,
}

impl Earlier {
    /// Nothing is read yet.
    pub fn new(rows: EarlierRows) -> Earlier {
        Earlier { rows, urls: HashSet::new(), outcomes: Vec::new() }
    }

    /// Whether the URL has a row.
    pub fn has(&self, url: &str) -> bool {
        self.urls.contains(url)
    }

    /// Reads on, up to `trusted` bytes or the first thing that is not a complete result of this program.
    pub fn read_to(&mut self, trusted: u64) -> io::Result<()> {
        while let Some(row) = self.rows.next(trusted)? {
            self.urls.insert(row.url);
            self.outcomes.push(row.outcome);
        }
        Ok(())
    }
}

/// One result, or the first record of a file. It is kept or discarded as a whole.
struct Part {
    bytes: u64,
    row: Option<Seen>,
}

/// The fields of a row that a resumed run needs.
#[derive(Deserialize)]
struct Seen {
    url: String,
    outcome: RowOutcome,
    reason: Option<String>,
}

impl Seen {
    /// Whether the row records an internal error. Earlier versions wrote such rows as `url_failure`.
    fn is_internal(&self) -> bool {
        let says_so = |reason: &String| reason.starts_with("internal:");
        self.outcome == RowOutcome::Internal
            || self.outcome == RowOutcome::UrlFailure && self.reason.as_ref().is_some_and(says_so)
    }
}

fn next_line(file: &mut BufReader<File>, left: u64) -> io::Result<Option<Part>> {
    let mut line = Vec::new();
    let bytes = io::Read::take(file, left).read_until(b'\n', &mut line)? as u64;
    let row = line.strip_suffix(b"\n").and_then(|row| serde_json::from_slice(row).ok());
    Ok(row.map(|row| Part { bytes, row: Some(row) }))
}

/// Reads the records of a URL, up to the one with its row, or the first record of a file of this program.
fn next_capture(file: &mut BufReader<File>, left: u64) -> io::Result<Option<Part>> {
    let mut bytes = 0;
    loop {
        let member = match next_member(file, left - bytes, MAX_ROW_BYTES) {
            Ok(Some(member)) => member,
            Err(MemberError::Unreadable(error)) => return Err(error),
            Ok(None) | Err(_) => return Ok(None),
        };
        bytes += member.stored_bytes;
        let Ok(record) = parse_record(&member.content) else { continue };
        match record.kind() {
            Some(RecordKind::Metadata) => {
                let row = serde_json::from_slice(record.block).ok();
                return Ok(row.map(|row| Part { bytes, row: Some(row) }));
            }
            Some(RecordKind::Warcinfo) => {
                let ours = SOFTWARE.split('/').next().unwrap_or_default().as_bytes();
                let is_ours = record.block.starts_with(ours);
                return Ok(is_ours.then_some(Part { bytes, row: None }));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::capture::{Archived, warcinfo};
    use super::*;
    use fetchwell_policy::time::Time;

    fn rows_of(content: &[u8], trusted: u64, format: OutputFormat) -> (Vec<String>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        std::fs::write(&path, content).unwrap();
        let mut rows = EarlierRows::open(&path, format).unwrap();
        let mut urls = Vec::new();
        while let Some(row) = rows.next(trusted).unwrap() {
            urls.push(row.url);
        }
        (urls, rows.end())
    }

    fn row(url: &str) -> String {
        format!("{{\"url\":\"{url}\",\"outcome\":\"fetched\",\"x\":1}}")
    }

    #[test]
    fn torn_and_unconfirmed_rows_are_cut_off() {
        let rows_of = |text: &str, trusted| rows_of(text.as_bytes(), trusted, OutputFormat::Json);
        let a = row("a") + "\n";
        let b = row("b") + "\n";
        let one = a.len() as u64;
        let two = (a.len() + b.len()) as u64;
        let both = format!("{a}{b}");
        assert_eq!(rows_of(&both, two), (vec!["a".into(), "b".into()], two));
        assert_eq!(rows_of(&both, two - 1), (vec!["a".into()], one));
        assert_eq!(rows_of(&both, one), (vec!["a".into()], one));
        assert_eq!(rows_of(&format!("{a}{{\"url\":\"b"), 1_000), (vec!["a".into()], one));
        assert_eq!(rows_of(&format!("{a}junk\n{b}"), 1_000), (vec!["a".into()], one));
        assert_eq!(rows_of("", 0), (vec![], 0));
    }

    #[test]
    fn of_an_archive_as_much_is_trusted_as_has_its_last_record() {
        let record = |url: &str| Archived::default().with_row(url, "x", row(url).as_bytes());
        let info = warcinfo(Path::new("a.warc.gz"), "agent", Time::EPOCH);
        let a = record("a");
        let b = record("b");
        let file = [info.clone(), a.clone(), b.clone()].concat();
        for trusted in 0..=file.len() {
            let (urls, whole): (&[&str], usize) = match trusted {
                all if all == file.len() => (&["a", "b"], all),
                most if most >= info.len() + a.len() => (&["a"], info.len() + a.len()),
                some if some >= info.len() => (&[], info.len()),
                _ => (&[], 0),
            };
            let (found, end) = rows_of(&file, trusted as u64, OutputFormat::Warc);
            assert_eq!(
                (found, end),
                (urls.iter().map(|url| (*url).into()).collect(), whole as u64)
            );
        }
        let torn = [&file[..], b"junk"].concat();
        assert_eq!(rows_of(&torn, 10_000, OutputFormat::Warc).1, file.len() as u64);
        assert_eq!(rows_of(b"{\"url\":\"a\"}\n", 10_000, OutputFormat::Warc), (vec![], 0));
    }
}

//! A large archive, made of pages and of the sound samples, again and again.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use fetchwell_archive::gzip::Inflater;
use fetchwell_archive::message;
use fetchwell_archive::warc::{RecordKind, WarcItem, WarcLimits, WarcReader};
use fetchwell_archive::warc_writer::{Block, NewRecord};
use flate2::read::GzDecoder;

const DATE: &str = "2026-11-15T12:00:00Z";

/// Members of an archive, and how long they are when inflated.
struct Part {
    members: Vec<u8>,
    content_bytes: u64,
}

/// Writes the archive. Says how large it is.
pub(crate) fn warc(data: &Path, out: &Path, content_bytes: u64) -> Result<String> {
    let mut parts = Vec::new();
    for (number, page) in pages(data)?.iter().enumerate() {
        parts.push(capture(number, page)?);
    }
    for sample in samples(data)? {
        parts.extend(sound(&sample)?);
    }
    ensure!(!parts.is_empty(), "no page and no sample in {}", data.display());
    let mut file = BufWriter::new(File::create(out)?);
    let mut content = 0;
    let mut stored = 0;
    for part in parts.iter().cycle() {
        if content >= content_bytes {
            break;
        }
        file.write_all(&part.members)?;
        content += part.content_bytes;
        stored += part.members.len();
    }
    file.flush()?;
    Ok(format!("{content} {stored}"))
}

/// The HTML of every page below `articles`.
fn pages(data: &Path) -> Result<Vec<Vec<u8>>> {
    let mut pages = Vec::new();
    for folder in ["articles/web", "articles/news"] {
        for file in sorted_files(&data.join(folder))? {
            if file.to_string_lossy().ends_with(".html.gz") {
                let mut page = Vec::new();
                GzDecoder::new(File::open(&file)?).read_to_end(&mut page)?;
                pages.push(page);
            }
        }
    }
    Ok(pages)
}

/// The archives below `warc`.
pub(crate) fn samples(data: &Path) -> Result<Vec<PathBuf>> {
    sorted_files(&data.join("warc"))
        .map(|files| files.into_iter().filter(|f| f.to_string_lossy().contains(".warc")).collect())
}

fn sorted_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("no folder {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// A request, a response and metadata, as a crawler writes them for a page.
fn capture(number: usize, page: &[u8]) -> Result<Part> {
    let uri = format!("https://site-{number}.test/articles/{number}.html");
    let host = format!("site-{number}.test");
    let request = message::request(
        "GET",
        &format!("/articles/{number}.html"),
        [("User-Agent", &b"Crawler/1.0"[..]), ("Host", host.as_bytes()), ("Accept", b"*/*")],
    );
    let response = message::response(
        200,
        "OK",
        [
            ("Date", &b"Sun, 15 Nov 2026 12:00:00 GMT"[..]),
            ("Server", b"nginx"),
            ("Content-Type", b"text/html; charset=utf-8"),
            ("Content-Encoding", b"gzip"),
            ("Transfer-Encoding", b"chunked"),
            ("Cache-Control", b"max-age=600"),
            ("Vary", b"Accept-Encoding"),
            ("X-Frame-Options", b"SAMEORIGIN"),
            ("Strict-Transport-Security", b"max-age=31536000"),
        ],
        page,
    );
    let fetched = b"fetchTimeMs: 123\r\ncharset-detected: UTF-8\r\n";
    let mut members = Vec::new();
    let mut content_bytes = 0;
    for (kind, content_type, block) in [
        (RecordKind::Request, "application/http; msgtype=request", Block::Http(&request)),
        (RecordKind::Response, "application/http; msgtype=response", Block::Http(&response)),
        (RecordKind::Metadata, "application/warc-fields", Block::Bytes(fetched)),
    ] {
        let record =
            NewRecord { target_uri: Some(&uri), ..NewRecord::new(kind, DATE, content_type, block) };
        let began = members.len();
        record.write(&mut members)?;
        content_bytes += Inflater::default().inflate(&members[began..], usize::MAX).content.len();
    }
    Ok(Part { members, content_bytes: content_bytes as u64 })
}

/// A sample that all readers agree on: gzip, a member a record, nothing odd.
fn sound(sample: &Path) -> Result<Option<Part>> {
    let mut reader = WarcReader::new(File::open(sample)?, WarcLimits::default());
    let mut offsets = Vec::new();
    while let Some(item) = reader.next()? {
        let WarcItem::Record(record) = item else { return Ok(None) };
        offsets.push(record.place);
    }
    let tally = reader.tally();
    let is_sound = tally.ok == tally.items() && tally.ok > 1;
    let has_members = offsets.windows(2).all(|pair| pair[0].file_offset < pair[1].file_offset)
        && offsets.iter().all(|place| place.member_offset == 0);
    let is_gzip = sample.extension().is_some_and(|extension| extension == "gz");
    let content_bytes = tally.record_bytes + tally.padding_bytes;
    Ok(if is_sound && has_members && is_gzip {
        Some(Part { members: fs::read(sample)?, content_bytes })
    } else {
        None
    })
}

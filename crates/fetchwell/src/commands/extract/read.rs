//! Reads files and splits archives into pages.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fetchwell_archive::ArchiveFormat;
use fetchwell_archive::arc::{ArcItem, ArcReader};
use fetchwell_archive::gzip::{MemberError, next_member};
use fetchwell_archive::headers::MAX_HEAD_BYTES;
use fetchwell_archive::warc::{
    FilePosition, Flaw, RecordKind, Stretch, WarcItem, WarcLimits, WarcReader,
};
use indicatif::ProgressBar;

use super::inputs::{InputFile, STDIN, is_archive_name};
use super::{failed, too_large};

/// How much of a file is read to detect its format.
const DETECTION_BYTES: u64 = 8 * 1024;

/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

const TRY_AGAIN: &str = "check the file, or copy or download it again";

/// What a file contains, to be worked on in parallel.
pub(super) enum ExtractItem {
    Html(HtmlPage),
    Record(ArchivedResponse),
    /// A record that cannot have a page.
    Skipped,
    /// The message about something that could not be read.
    Failed(String),
}

impl ExtractItem {
    /// The name of its page, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            ExtractItem::Html(page) => shown(&page.file).to_owned(),
            ExtractItem::Record(record) => at_offset(&record.file, record.offset),
            ExtractItem::Skipped | ExtractItem::Failed(_) => String::new(),
        }
    }
}

/// An HTML file.
pub(super) struct HtmlPage {
    pub(super) file: Arc<str>,
    /// `None` for standard input.
    pub(super) path: Option<PathBuf>,
    pub(super) bytes: Vec<u8>,
}

/// A response in an archive.
pub(super) struct ArchivedResponse {
    pub(super) file: Arc<str>,
    pub(super) offset: u64,
    pub(super) url: String,
    pub(super) block: Vec<u8>,
    /// Whether the rest of the block was left out because it is too long.
    pub(super) is_too_long: bool,
}

/// A file that was opened, and its format.
pub(super) struct OpenFile {
    file: Arc<str>,
    path: Option<PathBuf>,
    format: Option<ArchiveFormat>,
    read: Box<dyn Read + Send>,
}

/// Receives items; it breaks when nobody wants any more.
pub(super) type Emit<'a> = &'a dyn Fn(ExtractItem) -> ControlFlow<()>;

impl OpenFile {
    /// Opens a file and detects its format. The bar counts the bytes that are read.
    pub(super) fn open(input: &InputFile, bar: &ProgressBar) -> Result<OpenFile, String> {
        let (path, read): (_, Box<dyn Read + Send>) = match input {
            InputFile::Stdin => (None, Box::new(io::stdin())),
            InputFile::File(path) => {
                let file = File::open(path);
                let file = file.map_err(|error| unread(&path.to_string_lossy(), &error))?;
                (Some(path.clone()), Box::new(file))
            }
            InputFile::Unreadable(message) => return Err(message.clone()),
        };
        let file: Arc<str> =
            path.as_deref().map_or(STDIN.into(), |path| path.to_string_lossy()).into();
        let mut read = bar.wrap_read(read);
        let mut beginning = Vec::new();
        (&mut read)
            .take(DETECTION_BYTES)
            .read_to_end(&mut beginning)
            .map_err(|error| unread(&file, &error))?;
        let named = || path.as_deref().and_then(format_by_name);
        let format = ArchiveFormat::detect(&beginning).or_else(named);
        let read = Box::new(Cursor::new(beginning).chain(read));
        Ok(OpenFile { file, path, format, read })
    }

    pub(super) fn is_archive(&self) -> bool {
        self.format.is_some()
    }

    /// Emits the page of the file, or the records of the archive.
    pub(super) fn emit_items(self, max_bytes: usize, emit: Emit<'_>) -> ControlFlow<()> {
        let limits = WarcLimits { max_block_bytes: max_bytes.saturating_add(MAX_HEAD_BYTES) };
        let file = self.file.clone();
        let ended = match self.format {
            None => {
                return emit(
                    self.html(max_bytes).map_or_else(ExtractItem::Failed, ExtractItem::Html),
                );
            }
            Some(ArchiveFormat::Warc) => self.emit_warc(limits, emit),
            Some(ArchiveFormat::Arc) => self.emit_arc(limits, emit),
        };
        match ended {
            Ok(flow) => flow,
            Err(error) => emit(ExtractItem::Failed(unread(&file, &error))),
        }
    }

    fn html(self, max_bytes: usize) -> Result<HtmlPage, String> {
        let OpenFile { file, path, read, .. } = self;
        let mut bytes = Vec::new();
        read.take((max_bytes as u64).saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| unread(&file, &error))?;
        if bytes.len() <= max_bytes && bytes.starts_with(&GZIP) {
            bytes = inflated(&bytes, max_bytes)
                .map_err(|error| failed(shown(&file), error, TRY_AGAIN))?;
        }
        if bytes.len() > max_bytes {
            return Err(too_large(shown(&file), max_bytes));
        }
        Ok(HtmlPage { file, path, bytes })
    }

    fn emit_warc(self, limits: WarcLimits, emit: Emit<'_>) -> io::Result<ControlFlow<()>> {
        let mut reader = WarcReader::new(self.read, limits);
        while let Some(item) = reader.next()? {
            let item = match item {
                WarcItem::Record(record) => {
                    let url = record.target_uri();
                    let is_response = record.kind() == Some(RecordKind::Response);
                    let url = url.as_deref().filter(|_| is_response);
                    record_item(&self.file, record.place, url, record.block, record.flaw.as_ref())
                }
                WarcItem::Malformed(stretch) => malformed(&self.file, &stretch),
            };
            if emit(item).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn emit_arc(self, limits: WarcLimits, emit: Emit<'_>) -> io::Result<ControlFlow<()>> {
        let mut reader = ArcReader::new(self.read, limits);
        while let Some(item) = reader.next()? {
            let item = match item {
                ArcItem::Record(record) => {
                    let url = Some(record.url.as_ref());
                    record_item(&self.file, record.place, url, record.block, record.flaw.as_ref())
                }
                ArcItem::Malformed(stretch) => malformed(&self.file, &stretch),
            };
            if emit(item).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The content of all gzip members, up to one byte more than the limit. Anything after them is ignored.
fn inflated(mut members: &[u8], max_bytes: usize) -> Result<Vec<u8>, MemberError> {
    let mut content = Vec::new();
    while members.starts_with(&GZIP) && content.len() <= max_bytes {
        let left_bytes = (max_bytes - content.len()) as u64 + 1;
        let Some(member) = next_member(&mut members, u64::MAX, left_bytes)? else { break };
        content.extend(member.content);
    }
    Ok(content)
}

/// The item of a record. `url` is that of a response; other records have no page.
fn record_item(
    file: &Arc<str>,
    place: FilePosition,
    url: Option<&str>,
    block: &[u8],
    flaw: Option<&Flaw>,
) -> ExtractItem {
    let offset = place.file_offset;
    if let Some(flaw @ (Flaw::Cut { .. } | Flaw::Damaged(_))) = flaw {
        return ExtractItem::Failed(failed(&at_offset(file, offset), flaw, TRY_AGAIN));
    }
    let Some(url) = url.filter(|url| is_web(url)) else { return ExtractItem::Skipped };
    ExtractItem::Record(ArchivedResponse {
        file: file.clone(),
        offset,
        url: url.to_owned(),
        block: block.to_vec(),
        is_too_long: flaw.is_some(),
    })
}

fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["http", "https"].iter().any(|web| web.eq_ignore_ascii_case(scheme))
}

fn malformed(file: &str, stretch: &Stretch) -> ExtractItem {
    let place = at_offset(file, stretch.place.file_offset);
    ExtractItem::Failed(failed(&place, &stretch.fault, TRY_AGAIN))
}

/// A record, for messages.
pub(super) fn at_offset(file: &str, offset: u64) -> String {
    format!("the record at offset {offset} of {}", shown(file))
}

/// A file, for messages.
pub(super) fn shown(file: &str) -> &str {
    if file == STDIN { "standard input" } else { file }
}

fn unread(file: &str, error: &io::Error) -> String {
    failed(shown(file), error, "check that it exists and that you may read it")
}

/// An archive whose beginning is damaged has only its name.
fn format_by_name(path: &Path) -> Option<ArchiveFormat> {
    let name = path.as_os_str().as_encoded_bytes().to_ascii_lowercase();
    let is_warc = name.ends_with(b".warc") || name.ends_with(b".warc.gz");
    let format = if is_warc { ArchiveFormat::Warc } else { ArchiveFormat::Arc };
    is_archive_name(path).then_some(format)
}

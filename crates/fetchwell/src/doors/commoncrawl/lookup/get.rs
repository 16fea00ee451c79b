//! `fetchwell commoncrawl get`: a captured page, brought back.

use bytes::Bytes;
use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_archive::warc::parse_record;
use fetchwell_engine::web::Answer;
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Settings;
use tracing::{error, info};

use super::captures::Captures;
use super::errand::{self, Errand};
use super::pattern::Keys;
use crate::commands::commoncrawl::archive::OpenArchive;
use crate::commands::commoncrawl::args::GetArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::doors::commoncrawl::byte_range::ByteRange;
use crate::doors::commoncrawl::read_time::ReadTime;
use crate::doors::commoncrawl::work::{Document, record_bytes};
use crate::doors::fetch::format::Format;

/// Captures of one page that are looked at.
const MAX_CAPTURES: usize = 100_000;
/// The longest record that is printed, inflated.
const MAX_RECORD_BYTES: usize = 64 << 20;

/// Does what was typed.
pub(crate) fn get(settings: &Settings, args: GetArgs, as_json: bool) -> Running<'_> {
    Box::pin(get_inner(settings, args, as_json))
}

async fn get_inner(settings: &Settings, args: GetArgs, as_json: bool) -> Result<Exit, Exit> {
    let format = if as_json { Format::Json } else { args.format };
    let crawl = settings.values.commoncrawl_crawl.as_str();
    if args.url.contains('*') {
        let find = format!("run `fetchwell commoncrawl find '{}'` to list its captures", args.url);
        return Err(Exit::Usage(format!("only one page can be printed at a time; {find}")));
    }
    let keys = Keys::of(&args.url)?;
    let archive = OpenArchive::open_to_look(settings).await?;
    let indexes = archive.archive.indexes(crawl)?;
    let fetching = Fetching {
        captures: Captures::new(indexes, keys, MAX_CAPTURES),
        root: archive.archive.root.clone(),
        timestamp: args.timestamp.clone(),
        chosen: None,
        record: None,
    };
    let (capture, record) = match errand::run(settings, &archive, fetching).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let which = match &args.timestamp {
                Some(time) => format!("no capture of {} at {time}", args.url),
                None => format!("no capture of {} with status 200", args.url),
            };
            error!("{crawl} has {which}; run `fetchwell commoncrawl find` to list its captures");
            return Ok(Exit::SomeFailed);
        }
        Err(exit) => return Ok(exit),
    };
    info!("captured at {}: {}", capture.timestamp, capture.url().unwrap_or_default());
    let reading = ReadTime(settings.values.extract_max_time);
    match render(&capture, &record, format, reading) {
        Ok(text) => print(&text),
        Err(fault) => {
            error!("{}: {fault}", args.url);
            Ok(Exit::SomeFailed)
        }
    }
}

/// The index, and then one record.
#[derive(Clone)]
struct Fetching {
    captures: Captures,
    root: WebUrl,
    timestamp: Option<String>,
    chosen: Option<(CdxRecord, ByteRange)>,
    record: Option<Bytes>,
}

impl Errand for Fetching {
    type Found = Option<(CdxRecord, Bytes)>;

    fn wanted(&self) -> Option<(WebUrl, ByteRange)> {
        match (&self.chosen, &self.record) {
            (Some((capture, range)), None) => {
                Some((self.root.join(capture.filename()?).ok()?, *range))
            }
            (Some(_), Some(_)) => None,
            (None, _) => self.captures.wanted(),
        }
    }

    fn take(&mut self, answer: &Answer) -> Result<(), String> {
        if let Some((_, range)) = &self.chosen {
            let record = range.of(answer).map_err(|fault| fault.to_string())?;
            self.record = Some(answer.body.slice_ref(record));
            return Ok(());
        }
        self.captures.take(answer)?;
        if self.captures.wanted().is_none()
            && let Some(capture) = choose(&self.captures.found, self.timestamp.as_deref())
        {
            let place = || Some(ByteRange { offset: capture.offset()?, length: capture.length()? });
            let range = place().filter(|_| capture.filename().is_some());
            let range = range.ok_or("the index does not say where the record is")?;
            self.chosen = Some((capture.clone(), range));
        }
        Ok(())
    }

    fn found(&self) -> Self::Found {
        let (capture, _) = self.chosen.clone()?;
        Some((capture, self.record.clone()?))
    }
}

/// The newest capture of that time; else the newest that was answered with 200.
fn choose<'c>(captures: &'c [CdxRecord], timestamp: Option<&str>) -> Option<&'c CdxRecord> {
    let is_meant = |capture: &&CdxRecord| match timestamp {
        Some(time) => capture.timestamp.starts_with(time),
        None => capture.metadata.get("status").is_some_and(|status| status == "200"),
    };
    captures.iter().filter(is_meant).max_by_key(|capture| &capture.timestamp)
}

fn render(
    capture: &CdxRecord,
    record: &[u8],
    format: Format,
    reading: ReadTime,
) -> anyhow::Result<Vec<u8>> {
    if format == Format::Warc {
        return Ok(record.to_vec());
    }
    if format == Format::Json {
        let document = Document::of_capture(capture, record, MAX_RECORD_BYTES, reading)?;
        return Ok(format!("{}\n", serde_json::to_string(&document)?).into_bytes());
    }
    let bytes = record_bytes(record, MAX_RECORD_BYTES)?;
    let record = parse_record(&bytes)?;
    let response = record.http()?;
    let mut scratch = Vec::new();
    let body = response.body(&mut scratch, MAX_RECORD_BYTES);
    let content_type = response.headers.get("content-type");
    let is_html = fetchwell_extract::is_html(content_type.as_deref(), body.bytes);
    if format == Format::Html && !is_html {
        return Ok(body.bytes.to_vec());
    }
    anyhow::ensure!(is_html, "the page is not HTML; --format html prints it as it is");
    let html = fetchwell_extract::decode(body.bytes, content_type.as_deref()).text;
    if format == Format::Html {
        return Ok(html.into_owned().into_bytes());
    }
    let url = url::Url::parse(capture.url().unwrap_or_default())?;
    let article = reading.article(&html, &url).map_err(|slow| anyhow::anyhow!("{slow}"))?;
    let mut text = if format == Format::Text { article.text } else { article.markdown };
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn the_newest_sound_capture_is_chosen_unless_a_time_is_said() {
        let capture = |timestamp: &str, status: &str| CdxRecord {
            surt_url: "com,example)/".to_owned(),
            timestamp: timestamp.to_owned(),
            metadata: [("status".to_owned(), status.to_owned())].into(),
        };
        let captures = [
            capture("20240701000000", "200"),
            capture("20240703000000", "200"),
            capture("20240704000000", "404"),
        ];
        let chosen = |time| choose(&captures, time).map(|capture| capture.timestamp.as_str());
        assert_eq!(chosen(None), Some("20240703000000"));
        assert_eq!(chosen(Some("20240701")), Some("20240701000000"));
        assert_eq!(chosen(Some("20240704000000")), Some("20240704000000"));
        assert_eq!(chosen(Some("2023")), None);
    }

    #[test]
    fn a_record_is_printed_however_it_is_stored() {
        let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>Words.</p>";
        let head = "WARC/1.0\r\nWARC-Type: response\r\nContent-Length";
        let plain = format!("{head}: {}\r\n\r\n{http}\r\n\r\n", http.len()).into_bytes();
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(&plain).unwrap();
        let said = [
            ("url", "https://example.com/".to_owned()),
            ("filename", "a.warc".to_owned()),
            ("offset", "0".to_owned()),
            ("length", plain.len().to_string()),
        ];
        let capture = CdxRecord {
            metadata: said.map(|(name, value)| (name.to_owned(), value)).into(),
            ..CdxRecord::default()
        };
        for stored in [member.finish().unwrap(), plain] {
            for (format, want) in [
                (Format::Markdown, "Words."),
                (Format::Text, "Words."),
                (Format::Html, "<p>Words.</p>"),
                (Format::Json, "\"text\":"),
            ] {
                let printed = render(&capture, &stored, format, ReadTime::default()).unwrap();
                let printed = String::from_utf8(printed).unwrap();
                assert!(printed.contains(want), "{format:?}: {printed}");
            }
        }
    }
}

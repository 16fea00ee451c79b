//! `fetchwell commoncrawl get`: prints a captured page.

use fetchwell_archive::warc::parse_record;
use fetchwell_commoncrawl::ReadTime;
use fetchwell_commoncrawl::lookup::{CapturedPage, Keys};
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_extract::Article;
use fetchwell_settings::Settings;
use tracing::{error, info};

use super::archive::{OpenArchive, exit_of};
use super::args::GetArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};

/// The maximum size of a printed record, inflated.
const MAX_RECORD_BYTES: usize = 64 << 20;

pub(super) fn run(settings: &Settings, args: GetArgs, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        let format = if as_json { OutputFormat::Json } else { args.format };
        let crawl = settings.values.commoncrawl_crawl.as_str();
        if args.url.contains('*') {
            let find =
                format!("run `fetchwell commoncrawl find '{}'` to list its captures", args.url);
            return Err(Exit::Usage(format!("only one page can be printed at a time; {find}")));
        }
        let keys = Keys::of(&args.url)?;
        let archive = OpenArchive::open_to_look(settings).await?;
        let page = match archive.reader(settings).get(keys, args.timestamp.clone()).await {
            Ok(Some(page)) => page,
            Ok(None) => {
                let which = match &args.timestamp {
                    Some(time) => format!("no capture of {} at {time}", args.url),
                    None => format!("no capture of {} with status 200", args.url),
                };
                error!(
                    "{crawl} has {which}; run `fetchwell commoncrawl find` to list its captures"
                );
                return Ok(Exit::SomeFailed);
            }
            Err(error) => return Ok(exit_of(settings, error)),
        };
        info!("captured at {}: {}", page.capture.timestamp, page.capture.url().unwrap_or_default());
        let reading = ReadTime(settings.values.extract_max_time);
        match (ReadPage { page: &page, max_bytes: MAX_RECORD_BYTES, reading }).rendered(format) {
            Ok(text) => print(text),
            Err(fault) => {
                error!("{}: {fault}", args.url);
                Ok(Exit::SomeFailed)
            }
        }
    })
}

/// A captured page as Markdown, or as it is if it is another kind of text. Its record has at most `max_bytes`, inflated.
pub(crate) fn markdown(
    page: &CapturedPage,
    max_bytes: usize,
    reading: ReadTime,
) -> anyhow::Result<String> {
    let page = ReadPage { page, max_bytes, reading };
    match page.body()? {
        PageBody::Html(html) => Ok(page.article_of(&html)?.markdown),
        PageBody::Other(bytes) => String::from_utf8(bytes)
            .map_err(|_| anyhow::anyhow!("the capture is neither HTML nor text")),
    }
}

/// A captured page, and the limits for reading it.
struct ReadPage<'a> {
    page: &'a CapturedPage,
    /// The maximum size of the record, inflated.
    max_bytes: usize,
    reading: ReadTime,
}

enum PageBody {
    /// HTML, as UTF-8.
    Html(String),
    Other(Vec<u8>),
}

impl ReadPage<'_> {
    fn rendered(&self, format: OutputFormat) -> anyhow::Result<Vec<u8>> {
        Ok(match format {
            OutputFormat::Json => {
                let mut line =
                    serde_json::to_vec(&self.page.document(self.max_bytes, self.reading)?)?;
                line.push(b'\n');
                line
            }
            OutputFormat::Warc => self.page.stored.to_vec(),
            OutputFormat::Html => match self.body()? {
                PageBody::Html(html) => html.into_bytes(),
                PageBody::Other(bytes) => bytes,
            },
            OutputFormat::Markdown => format!("{}\n", self.article()?.markdown.trim_end()).into(),
            OutputFormat::Text => format!("{}\n", self.article()?.text.trim_end()).into(),
        })
    }

    fn body(&self) -> anyhow::Result<PageBody> {
        let bytes = self.page.record(self.max_bytes)?;
        let record = parse_record(&bytes)?;
        let response = record.http()?;
        let mut scratch = Vec::new();
        let body = response.body(&mut scratch, self.max_bytes);
        let content_type = response.headers.get("content-type");
        if !fetchwell_extract::is_html(content_type.as_deref(), body.bytes) {
            return Ok(PageBody::Other(body.bytes.to_vec()));
        }
        let html = fetchwell_extract::decode(body.bytes, content_type.as_deref()).text;
        Ok(PageBody::Html(html.into_owned()))
    }

    fn article(&self) -> anyhow::Result<Article> {
        let PageBody::Html(html) = self.body()? else {
            anyhow::bail!("the page is not HTML; --format html prints it as it is");
        };
        self.article_of(&html)
    }

    fn article_of(&self, html: &str) -> anyhow::Result<Article> {
        let url = url::Url::parse(self.page.capture.url().unwrap_or_default())?;
        self.reading.article(html, &url).map_err(|slow| anyhow::anyhow!("{slow}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use fetchwell_archive::cdxj::CdxRecord;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// A record of a page.
    fn record(html: &str) -> Vec<u8> {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
        let head = "WARC/1.0\r\nWARC-Type: response\r\nContent-Length";
        format!("{head}: {}\r\n\r\n{http}\r\n\r\n", http.len()).into_bytes()
    }

    fn gzip(record: &[u8]) -> Vec<u8> {
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(record).unwrap();
        member.finish().unwrap()
    }

    #[test]
    fn a_record_that_inflates_beyond_the_limit_is_not_read() {
        let url = ("url".to_owned(), "https://example.com/".to_owned());
        let capture = CdxRecord { metadata: [url].into(), ..CdxRecord::default() };
        let large = gzip(&record(&format!("<p>Words.{}</p>", " ".repeat(100_000))));
        assert!(large.len() < 10_000);
        let page = CapturedPage { capture, stored: large.into() };
        assert_eq!(markdown(&page, 200_000, ReadTime::default()).unwrap().trim(), "Words.");
        let refused = markdown(&page, 50_000, ReadTime::default()).unwrap_err().to_string();
        assert!(refused.contains("50000"), "{refused}");
    }

    #[test]
    fn a_record_is_printed_however_it_is_stored() {
        let plain = record("<p>Words.</p>");
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
        for stored in [gzip(&plain), plain] {
            let page = CapturedPage { capture: capture.clone(), stored: stored.into() };
            for (format, want) in [
                (OutputFormat::Markdown, "Words."),
                (OutputFormat::Text, "Words."),
                (OutputFormat::Html, "<p>Words.</p>"),
                (OutputFormat::Json, "\"text\":"),
            ] {
                let reading = ReadTime::default();
                let read = ReadPage { page: &page, max_bytes: MAX_RECORD_BYTES, reading };
                let printed = read.rendered(format).unwrap();
                let printed = String::from_utf8(printed).unwrap();
                assert!(printed.contains(want), "{format:?}: {printed}");
            }
        }
    }
}

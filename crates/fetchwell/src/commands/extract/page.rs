//! Extracts the article of a page, and prints it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fetchwell_archive::{BodyFlaw, HttpMessage};
use fetchwell_doors::fetch::{OutputFormat, markdown_page, text_page, under_url};
use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_extract::{
    Article, declared_url_within, decode, extract_within, is_html, is_text, links_within,
};
use fetchwell_policy::units::format_duration;
use serde::Serialize;
use url::Url;

use super::read::{ArchivedResponse, ExtractItem, HtmlPage, at_offset, shown};
use super::{failed, too_large};
use crate::console::output::json_line;

/// The URL of a page from standard input that does not declare one.
const STDIN_URL: &str = "file:///dev/stdin";

/// What became of an item.
pub(super) enum ExtractOutcome {
    Page {
        /// As it is printed.
        bytes: Vec<u8>,
        /// The name of a page that has more text than is read.
        cut: Option<String>,
    },
    /// A record without a page.
    Skipped,
    /// The message about it.
    Failed(String),
}

/// How pages are read and printed.
pub(super) struct ExtractRules {
    pub(super) reading: ReadLimits,
    pub(super) max_bytes: usize,
    pub(super) format: OutputFormat,
    /// Whether the output can have several pages.
    pub(super) several: bool,
    /// The URL of the only page.
    pub(super) url: Option<Url>,
    pub(super) links: bool,
}

/// One line of JSON. Fields that `fetch` has, too, have the same names.
#[derive(Debug, Serialize)]
struct ArticleRow<'a> {
    url: &'a str,
    title: Option<&'a str>,
    author: Option<String>,
    authors: Vec<String>,
    published: Option<String>,
    site_name: Option<String>,
    description: Option<String>,
    canonical_url: Option<String>,
    lang: Option<String>,
    image: Option<String>,
    text: String,
    markdown: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<String>>,
    file: &'a str,
    offset: Option<u64>,
}

/// Where a page was found.
struct PageSource<'a> {
    file: &'a str,
    offset: Option<u64>,
}

/// The URL of a page.
enum PageUrl {
    Known {
        text: String,
        url: Url,
    },
    /// The page may declare another one.
    Fallback(Url),
}

impl ExtractRules {
    /// Extracts the page of an item. A panic costs only this page.
    pub(super) fn outcome(&self, item: ExtractItem) -> ExtractOutcome {
        let name = item.name();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.try_outcome(item)));
        outcome.unwrap_or_else(|_| {
            let fix = "please report it as a bug of Fetchwell";
            ExtractOutcome::Failed(failed(&name, "an internal error", fix))
        })
    }

    fn try_outcome(&self, item: ExtractItem) -> ExtractOutcome {
        match item {
            ExtractItem::Html(page) => self.html(&page).unwrap_or_else(ExtractOutcome::Failed),
            ExtractItem::Record(record) => {
                self.record(&record).unwrap_or_else(ExtractOutcome::Failed)
            }
            ExtractItem::Skipped => ExtractOutcome::Skipped,
            ExtractItem::Failed(message) => ExtractOutcome::Failed(message),
        }
    }

    fn html(&self, page: &HtmlPage) -> Result<ExtractOutcome, String> {
        let text = decode(&page.bytes, None).text;
        if !is_text(None, text.as_bytes()) || !text.contains('<') || text.starts_with("%PDF-") {
            let why = if page.bytes.is_empty() {
                "it is empty"
            } else {
                "it is not HTML, a WARC file or an ARC file"
            };
            return Err(failed(shown(&page.file), why, "leave it out, or check its content"));
        }
        let url = match &self.url {
            Some(url) => PageUrl::Known { text: url.to_string(), url: url.clone() },
            None => PageUrl::Fallback(file_url(page).ok_or_else(|| {
                failed(shown(&page.file), "its path cannot be a URL", "name its URL with --url")
            })?),
        };
        self.page(&text, url, &PageSource { file: &page.file, offset: None })
    }

    /// Only HTML with status 200 is a page.
    fn record(&self, record: &ArchivedResponse) -> Result<ExtractOutcome, String> {
        let name = || at_offset(&record.file, record.offset);
        let broken = |why: &dyn std::fmt::Display| {
            failed(&name(), why, "the other records are not affected")
        };
        let response = HttpMessage::parse(&record.block).map_err(|fault| broken(&fault))?;
        if response.status() != Some(200) {
            return Ok(ExtractOutcome::Skipped);
        }
        let mut scratch = Vec::new();
        let body = response.body(&mut scratch, self.max_bytes);
        let content_type = response.headers.get("content-type");
        let content_type = content_type.as_deref();
        if !is_html(content_type, body.bytes) {
            return Ok(ExtractOutcome::Skipped);
        }
        // A body without an encoding is not cut.
        let is_long = body.flaw == Some(BodyFlaw::TooLarge) || body.bytes.len() > self.max_bytes;
        if record.is_too_long || is_long {
            return Err(too_large(&name(), self.max_bytes));
        }
        if let Some(flaw @ BodyFlaw::UnknownEncoding) = body.flaw {
            return Err(broken(&flaw));
        }
        let url = Url::parse(&record.url).map_err(|error| broken(&error))?;
        let url = PageUrl::Known { text: record.url.clone(), url };
        let html = decode(body.bytes, content_type).text;
        self.page(&html, url, &PageSource { file: &record.file, offset: Some(record.offset) })
    }

    fn page(
        &self,
        html: &str,
        url: PageUrl,
        source: &PageSource<'_>,
    ) -> Result<ExtractOutcome, String> {
        let read = self.reading.within(|limits| {
            let (text, url) = match url {
                PageUrl::Known { text, url } => (text, url),
                PageUrl::Fallback(file) => {
                    let url = declared_url_within(html, limits)?.unwrap_or(file);
                    (url.to_string(), url)
                }
            };
            let article = extract_within(html, &url, limits)?;
            let links = self.links.then(|| links_within(html, &url, limits)).transpose()?;
            Ok((text, article, links))
        });
        let name = source
            .offset
            .map_or(shown(source.file).to_owned(), |offset| at_offset(source.file, offset));
        let (url, article, links) = read.map_err(|slow| {
            let limit = format_duration(self.reading.max_time);
            let fix = format!("raise extract.max_time ({limit}) to give it more time");
            failed(&name, slow, &fix)
        })?;
        let cut = article.is_cut.then_some(name);
        let links = links.map(|links| links.into_iter().map(String::from).collect());
        Ok(ExtractOutcome::Page { bytes: self.printed(&url, article, links, source), cut })
    }

    fn printed(
        &self,
        url: &str,
        article: Article,
        links: Option<Vec<String>>,
        source: &PageSource<'_>,
    ) -> Vec<u8> {
        let title = Some(article.title.as_str()).filter(|title| !title.is_empty());
        let page = match self.format {
            OutputFormat::Markdown => markdown_page(title, &article.markdown),
            OutputFormat::Text => text_page(&article.text),
            _ => {
                let row = ArticleRow {
                    url,
                    title,
                    author: article.author,
                    authors: article.authors,
                    published: article.published,
                    site_name: article.site_name,
                    description: article.description,
                    canonical_url: article.canonical,
                    lang: article.lang,
                    image: article.image,
                    text: article.text,
                    markdown: article.markdown,
                    links,
                    file: source.file,
                    offset: source.offset,
                };
                return json_line(row).into_bytes();
            }
        };
        if self.several { under_url(self.format, url, page) } else { page }
    }
}

fn file_url(page: &HtmlPage) -> Option<Url> {
    match &page.path {
        Some(path) => Url::from_file_path(std::path::absolute(path).ok()?).ok(),
        None => Url::parse(STDIN_URL).ok(),
    }
}

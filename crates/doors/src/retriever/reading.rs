//! Reads the fields that a message requests from a page besides its content.

use fetchwell_engine::ports::inbox::document::{
    DocumentFormat, DocumentOptions, ElementSelector, ExtractedDocument,
};
use fetchwell_engine::ports::inbox::options::{Extracted, ExtractedArticle, Options};
use fetchwell_engine::web::Answer;
use fetchwell_extract::{
    Article, Limits, Part, PartContent, Selector, TookTooLong, extract_within, links_within,
    part_within,
};
use fetchwell_feed::sitemap::{self, Sitemap};
use fetchwell_policy::outcome::FetchOutcome;
use url::Url;

use crate::read_limits::ReadLimits;
use crate::sitemap_file::{self, GZIP_MAGIC, inflated, max_content_bytes};

/// The maximum number of links of a page.
const MAX_LINKS: usize = 10_000;

/// How many copies of a page's HTML are in memory at once: the output, and the JSON of the result.
const COPIES_OF_HTML: usize = 3;

/// What to read from a page besides its content.
pub(crate) struct Wanted {
    article: bool,
    links: bool,
    document: Option<DocumentOptions>,
    limits: ReadLimits,
}

impl Wanted {
    pub(super) fn of(options: &Options, limits: ReadLimits) -> Wanted {
        let document = options.document.clone();
        let has_links = |document: &DocumentOptions| document.has(DocumentFormat::Links);
        Wanted {
            article: options.extract || document.is_some(),
            links: options.links || document.as_ref().is_some_and(has_links),
            document,
            limits,
        }
    }

    pub(super) fn is_any(&self) -> bool {
        self.article || self.links
    }

    /// The memory needed to read a given page.
    pub(super) fn working_bytes(&self, body: &[u8]) -> usize {
        let copies = if self.writes_html() { COPIES_OF_HTML } else { 0 };
        let is_compressed = self.links && body.starts_with(GZIP_MAGIC);
        let as_sitemap = if is_compressed { sitemap_file::working_bytes(body) } else { 0 };
        self.limits
            .working_bytes(body.len())
            .saturating_add(body.len().saturating_mul(copies))
            .saturating_add(as_sitemap)
    }

    /// Whether HTML is written: as a format, or because a part of the page is read, even if only its text is wanted.
    fn writes_html(&self) -> bool {
        self.document.as_ref().is_some_and(|document| {
            let DocumentOptions { whole_page, include, exclude, .. } = document;
            let is_part = *whole_page || !include.is_empty() || !exclude.is_empty();
            is_part || document.has(DocumentFormat::Html)
        })
    }

    /// What the result has for a page that is text, as JSON.
    pub(super) fn read(
        &self,
        answer: &Answer,
        text: &str,
        url: &str,
    ) -> Result<Option<String>, FetchOutcome> {
        if !self.is_any() {
            return Ok(None);
        }
        let mut extracted = Extracted::default();
        let is_html = fetchwell_extract::is_html(answer.header("content-type"), &answer.body);
        if let Some(sitemap) = self.sitemap(&answer.body, text) {
            extracted.is_sitemap_index = sitemap.is_index;
            extracted.links = Some(sitemap.urls);
        } else if is_html && let Ok(found_at) = Url::parse(url) {
            extracted = self.limits.read(|limits| self.read_html(text, &found_at, limits))?;
        }
        if let Some(options) = &self.document {
            extracted.document.get_or_insert_default().formats = options.formats.clone();
        }
        Ok(to_json(&extracted))
    }

    /// The same for a body that is not text.
    pub(super) fn read_binary(&self, body: &[u8]) -> Option<String> {
        let sitemap = self.sitemap(body, "")?;
        let is_sitemap_index = sitemap.is_index;
        to_json(&Extracted { is_sitemap_index, links: Some(sitemap.urls), ..Extracted::default() })
    }

    /// The sitemap, if links are wanted and the page is one. It may be a gzip file.
    fn sitemap(&self, body: &[u8], text: &str) -> Option<Sitemap> {
        if !self.links {
            return None;
        }
        if !body.starts_with(GZIP_MAGIC) {
            return listed(text);
        }
        let content = inflated(body).ok()?;
        let text = fetchwell_extract::decode(&content, None).text;
        // In most charsets other than UTF-8, a byte may become three.
        if text.len() > max_content_bytes(body) {
            return None;
        }
        listed(&text)
    }

    fn read_html(
        &self,
        html: &str,
        found_at: &Url,
        limits: &Limits<'_>,
    ) -> Result<Extracted, TookTooLong> {
        let article = self.article.then(|| extract_within(html, found_at, limits)).transpose()?;
        let links = self.links.then(|| links_within(html, found_at, limits)).transpose()?;
        let mut extracted = Extracted {
            links: links.map(|links| links.into_iter().map(String::from).collect()),
            ..Extracted::default()
        };
        if let Some(article) = article {
            if self.document.is_some() {
                let language = article.lang.clone();
                let image = article.image.clone();
                let document =
                    ExtractedDocument { language, image, ..ExtractedDocument::default() };
                extracted.document = Some(document);
            }
            extracted.article = Some(extracted_article(article));
        }
        if let Some(options) = &self.document {
            add_part(&mut extracted, options, html, found_at, limits)?;
        }
        Ok(extracted)
    }
}

/// Replaces the article and the links by those of the part that the caller chose, and adds its HTML.
fn add_part(
    extracted: &mut Extracted,
    options: &DocumentOptions,
    html: &str,
    found_at: &Url,
    limits: &Limits<'_>,
) -> Result<(), TookTooLong> {
    let include: Vec<Selector> = options.include.iter().map(selector).collect();
    let exclude: Vec<Selector> = options.exclude.iter().map(selector).collect();
    let part = Part { whole_page: options.whole_page, include: &include, exclude: &exclude };
    let wants_html = options.has(DocumentFormat::Html);
    if part.is_main_content() && !wants_html {
        return Ok(());
    }
    let PartContent { text, markdown, html, links } = part_within(html, found_at, &part, limits)?;
    if let Some(article) = extracted.article.as_mut().filter(|_| !part.is_main_content()) {
        article.text = text;
        article.markdown = markdown;
    }
    if let Some(document) = extracted.document.as_mut().filter(|_| wants_html) {
        document.html = Some(html);
    }
    if part.has_selectors() && extracted.links.is_some() {
        extracted.links = Some(links.into_iter().map(String::from).collect());
    }
    Ok(())
}

fn selector(selector: &ElementSelector) -> Selector {
    let ElementSelector { name, id, classes } = selector.clone();
    Selector { name, id, classes }
}

/// Reads a sitemap: XML, or text that has a URL in every line. `None` if it is something else.
fn listed(text: &str) -> Option<Sitemap> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let begins_with = |word: &str| {
        start.get(..word.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(word))
    };
    let is_xml = ["<?xml", "<urlset", "<sitemapindex"].into_iter().any(begins_with);
    // The parser of URLs accepts spaces, but a line with spaces is prose.
    let is_one_word = |line: &str| !line.trim().contains(char::is_whitespace);
    let is_list =
        ["http://", "https://"].into_iter().any(begins_with) && text.lines().all(is_one_word);
    if !is_xml && !is_list {
        return None;
    }
    let sitemap = sitemap::read_any_site(text, MAX_LINKS, None).ok()?;
    (is_xml || sitemap.unusable == 0).then_some(sitemap)
}

fn to_json(extracted: &Extracted) -> Option<String> {
    if *extracted == Extracted::default() {
        return None;
    }
    serde_json::to_string(extracted).ok()
}

fn extracted_article(article: Article) -> ExtractedArticle {
    ExtractedArticle {
        title: article.title,
        text: article.text,
        markdown: article.markdown,
        author: article.author,
        authors: article.authors,
        published: article.published,
        site_name: article.site_name,
        description: article.description,
        canonical_url: article.canonical,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use fetchwell_testkit::samples::outcome;
    use serde_json::{Value, json};

    use super::*;
    use crate::read_limits::READING;

    const PAGE: &str = "<html lang=en><title>A title</title><nav><a href=/home>Home</a></nav>\
        <p id=a>Some words, and a few more of them. <a href=/next>Next</a></p><div class=ad>Buy</div></html>";

    fn read(options: &Value, content_type: &str, body: &str) -> Value {
        let options: Options = serde_json::from_value(options.clone()).unwrap();
        let mut answer = outcome(FetchOutcome::Answered(200), body).answer.unwrap();
        answer.headers.insert("content-type", content_type.parse().unwrap());
        let wanted = Wanted::of(&options, READING);
        let extracted = wanted.read(&answer, body, "http://a.test/").unwrap();
        extracted.map_or(Value::Null, |json| serde_json::from_str(&json).unwrap())
    }

    fn document(changes: &Value) -> Value {
        let mut document = json!({"formats": ["markdown"]});
        for (name, value) in changes.as_object().unwrap() {
            document[name] = value.clone();
        }
        read(&json!({"document": document}), "text/html", PAGE)
    }

    #[test]
    fn a_document_has_the_formats_and_the_part_that_were_asked_for() {
        let plain = document(&json!({}));
        assert_eq!(
            (&plain["title"], &plain["document"]["language"]),
            (&json!("A title"), &json!("en"))
        );
        assert_eq!(plain["document"]["formats"], json!(["markdown"]));
        assert!(plain.get("links").is_none() && plain["document"].get("html").is_none(), "{plain}");
        assert!(!plain["markdown"].as_str().unwrap().contains("Home"), "{plain}");

        let whole = document(
            &json!({"whole_page": true, "formats": ["html", "links"], "exclude": [".ad"]}),
        );
        let html = whole["document"]["html"].as_str().unwrap();
        assert!(html.contains("Home") && !html.contains("Buy"), "{whole}");
        assert_eq!(whole["links"], json!(["http://a.test/home", "http://a.test/next"]));
        assert!(whole["markdown"].as_str().unwrap().starts_with("[Home]"), "{whole}");

        let chosen = document(&json!({"include": ["#a"], "formats": ["markdown", "links"]}));
        assert!(chosen["text"].as_str().unwrap().starts_with("Some words"), "{chosen}");
        assert_eq!(chosen["links"], json!(["http://a.test/next"]));
    }

    #[test]
    fn a_text_that_is_not_html_has_its_formats_only() {
        let wanted = json!({"document": {"formats": ["markdown", "rawHtml"]}});
        let expected = json!({"document": {"formats": ["markdown", "rawHtml"]}});
        assert_eq!(read(&wanted, "text/plain", "words"), expected);
        assert_eq!(read(&json!({"extract": true}), "text/plain", "words"), Value::Null);
    }

    #[test]
    fn a_sitemap_links_to_what_it_lists() {
        let pages = "<?xml version='1.0'?><urlset><url><loc>http://a.test/1?a&amp;b</loc></url>\
                     <url><loc>http://b.test/2</loc></url></urlset>";
        let index =
            "<sitemapindex><sitemap><loc>http://a.test/1.xml</loc></sitemap></sitemapindex>";
        for (content_type, body, links, is_index) in [
            ("application/xml", pages, &["http://a.test/1?a&b", "http://b.test/2"][..], false),
            ("text/html", pages, &["http://a.test/1?a&b", "http://b.test/2"], false),
            ("text/xml", index, &["http://a.test/1.xml"], true),
            (
                "text/plain",
                "http://a.test/1\n\nhttp://a.test/2\n",
                &["http://a.test/1", "http://a.test/2"],
                false,
            ),
        ] {
            let found = read(&json!({"links": true}), content_type, body);
            assert_eq!(found["links"], json!(links), "{body}");
            assert_eq!(found.get("is_sitemap_index").is_some(), is_index, "{body}");
            assert_eq!(read(&json!({"extract": true}), "application/xml", body), Value::Null);
        }
        let text = "http://a.test/ is a URL.";
        assert_eq!(read(&json!({"links": true}), "text/plain", text), Value::Null);
        assert_eq!(read(&json!({"links": true}), "application/xml", "<?xml?><rss/>"), Value::Null);
    }

    #[test]
    fn a_sitemap_may_be_compressed_within_limits() {
        let wanted = Wanted::of(&Options { links: true, ..Options::default() }, READING);
        let sitemap = gzip(b"<urlset><loc>http://a.test/</loc></urlset>");
        assert_eq!(
            wanted.read_binary(&sitemap).as_deref(),
            Some(r#"{"links":["http://a.test/"]}"#)
        );
        let spaces = " ".repeat(1 << 20);
        let bomb = gzip(format!("{spaces}<urlset><loc>http://a.test/</loc></urlset>").as_bytes());
        assert_eq!(wanted.read_binary(&bomb), None);
        assert_eq!(wanted.read_binary(b"\x89PNG"), None);
        assert_eq!(Wanted::of(&Options::default(), READING).read_binary(&sitemap), None);
    }

    #[test]
    fn the_text_of_a_compressed_sitemap_is_no_larger_than_its_content_may_be() {
        let mut number = 1_u32;
        let noise = std::iter::repeat_with(|| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b'a' + (number >> 28) as u8
        });
        let mut content = b"<?xml version='1.0' encoding='windows-1252'?>\
                            <urlset><url><loc>http://a.test/</loc></url></urlset>"
            .to_vec();
        content.extend(noise.take(2_000));
        let wanted = Wanted::of(&Options { links: true, ..Options::default() }, READING);
        let links = |content: &[u8]| wanted.read_binary(&gzip(content));
        assert!(links(&content).is_some());
        // This byte becomes two or three in UTF-8, depending on the charset that it is taken for.
        content.resize(120_000, 0x80);
        assert!(content.len() < max_content_bytes(&gzip(&content)), "it can be inflated");
        assert_eq!(links(&content), None);
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(content).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn the_content_of_a_compressed_sitemap_is_counted() {
        let bytes =
            |options: Options, body: &[u8]| Wanted::of(&options, READING).working_bytes(body);
        let links = || Options { links: true, ..Options::default() };
        let gzip = [GZIP_MAGIC, &[0; 1_000]].concat();
        let plain = vec![b'x'; gzip.len()];
        let inflated = bytes(links(), &gzip) - bytes(links(), &plain);
        assert_eq!(inflated, sitemap_file::working_bytes(&gzip));
        let article = || Options { extract: true, ..Options::default() };
        assert_eq!(bytes(article(), &gzip), bytes(article(), &plain), "it is not inflated");
    }
}

//! One article.

use askama::Template;
use axum::extract::Path;

use super::field;
use super::reader::{self, Block};
use crate::dashboard::access::Visitor;
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::layout::{self, Section};

#[derive(Template)]
#[template(path = "article.html")]
struct Page<'a> {
    title: &'a str,
    byline: Vec<&'a str>,
    category: &'a str,
    lang: &'a str,
    url: &'a str,
    image: Option<&'a str>,
    reason: &'a str,
    blocks: Vec<Block>,
    uid: &'a str,
}

pub(in super::super) async fn page(visitor: Visitor, Path(uid): Path<String>) -> PageResult {
    let unknown = PageError::NotFound("there is no such article; articles are kept for seven days");
    let Some(articles) = &visitor.dashboard.subject.articles else { return Err(unknown) };
    let Some(fields) = articles.find(&uid).await? else { return Err(unknown) };
    let text = |name: &str| field(&fields, name);
    let markdown = if text("markdown").is_empty() { text("clean_text") } else { text("markdown") };
    let byline = [text("author"), text("site"), text("published")];
    let title = if text("title").is_empty() { text("url") } else { text("title") };
    let content = Page {
        title,
        byline: byline.into_iter().filter(|part| !part.is_empty()).collect(),
        category: text("category"),
        lang: if reader::is_language(text("lang")) { text("lang") } else { "" },
        url: text("url"),
        image: Some(text("image")).filter(|image| reader::is_web_address(image)),
        reason: text("reason"),
        blocks: reader::blocks(markdown, title),
        uid: text("uid"),
    };
    layout::page(&visitor, (Section::Articles, title), &content).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bold_and_italic_are_shown_as_such_and_all_else_is_text() {
        let markdown =
            "A **bold** and an *italic* word, [**both**](https://a.test/x), <b>no tag</b>.";
        let page = Page {
            title: "Words",
            byline: Vec::new(),
            category: "news",
            lang: "en",
            url: "https://a.test/",
            image: None,
            reason: "",
            blocks: reader::blocks(markdown, "Words"),
            uid: "0123456789abcdef",
        };
        let page = page.render().unwrap();
        for part in [
            "A <strong>bold</strong> and an <em>italic</em> word, ",
            "target=\"_blank\"><strong>both</strong></a>, ",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert!(!page.contains("<b>") && !page.contains("**"), "{page}");
    }
}

//! Formats pages as Markdown and text.

use fetchwell_policy::text::printable;

use super::format::OutputFormat;

/// A page as Markdown, with its title as the heading if it has none.
pub fn markdown_page(title: Option<&str>, markdown: &str) -> Vec<u8> {
    let page = text_page(markdown);
    match title {
        Some(title) if !page.is_empty() && !page.starts_with(b"# ") => {
            [format!("# {title}\n\n").as_bytes(), &page].concat()
        }
        _ => page,
    }
}

/// A page that ends with a line break.
pub fn text_page(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes
}

/// A page below a line with its URL, for output that has several pages; nothing if there is no page.
pub fn under_url(format: OutputFormat, url: &str, page: Vec<u8>) -> Vec<u8> {
    if page.is_empty() {
        return page;
    }
    // A `>` could end the HTML comment around the URL.
    let url = printable(url).replace('>', "%3E");
    let line = match format {
        OutputFormat::Text => format!("==> {url} <==\n"),
        _ => format!("<!-- {url} -->\n"),
    };
    [line.as_bytes(), &page, b"\n"].concat()
}

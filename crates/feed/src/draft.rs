//! An entry while it is read, and which of its links is its page.

use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

use crate::references::undo;
use crate::{Entry, MAX_FIELD_BYTES};

/// What is known of an entry so far.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) title: String,
    /// Where the page was before a service put its own link in that place.
    pub(crate) original: Option<WebUrl>,
    /// The page, as it is linked.
    pub(crate) page: Option<WebUrl>,
    /// Another way to it: a name that is an address, too.
    pub(crate) otherwise: Option<WebUrl>,
    pub(crate) published: Option<Time>,
    /// Not when it was published, but better than nothing.
    pub(crate) updated: Option<Time>,
}

impl Draft {
    /// The entry; none without a link.
    pub(crate) fn entry(self) -> Option<Entry> {
        let link = self.original.or(self.page).or(self.otherwise)?;
        let published = self.published.or(self.updated);
        Some(Entry { link, title: plain(&self.title), published })
    }
}

/// A link as a feed writes it. Some escape it twice: an address has no `&amp;` in it.
pub(crate) fn link(text: &str, base: &WebUrl) -> Option<WebUrl> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_FIELD_BYTES {
        return None;
    }
    base.join(&text.replace("&amp;", "&")).ok()
}

/// A title without the markup that may be in it, on one line.
pub(crate) fn plain(title: &str) -> String {
    let mut rest = &title[..title.floor_char_boundary(MAX_FIELD_BYTES)];
    let mut text = String::with_capacity(rest.len());
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        if tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') {
            let Some((_, after)) = tag.split_once('>') else {
                // There is no `>` in the rest either; searching again for each `<` would be quadratic.
                text.push('<');
                rest = tag;
                break;
            };
            rest = after;
        } else {
            text.push('<');
            rest = tag;
        }
    }
    text.push_str(rest);
    let text = undo(&text);
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|c| !c.is_control());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_plain_lines() {
        for (title, want) in [
            ("  a\n b ", "a b"),
            ("<b>a</b> &amp; b", "a & b"),
            ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
            ("a <b", "a <b"),
            ("a <b <c", "a <b <c"),
            ("a <b <c>d", "a d"),
            ("\u{1b}[31mred", "[31mred"),
        ] {
            assert_eq!(plain(title), want, "{title}");
        }
    }
}

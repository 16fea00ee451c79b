//! An entry that is being read, and the choice of its link.

use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

use crate::feed::{Entry, MAX_FIELD_BYTES};
use crate::references::undo;

/// The fields of an entry that have been read so far.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) title: String,
    /// The original URL of the page, where a feed service has replaced the link by its own.
    pub(crate) original: Option<WebUrl>,
    /// The link to the page.
    pub(crate) page: Option<WebUrl>,
    /// Another link to it, such as a GUID that is a URL.
    pub(crate) otherwise: Option<WebUrl>,
    /// Its ID, if that is a URL. It need not lead to the page, so any link is better.
    pub(crate) id: Option<WebUrl>,
    pub(crate) published: Option<Time>,
    /// Not the publication date, but better than none.
    pub(crate) updated: Option<Time>,
}

impl Draft {
    /// The entry; `None` without a link.
    pub(crate) fn entry(self) -> Option<Entry> {
        let link = self.original.or(self.page).or(self.otherwise).or(self.id)?;
        let published = self.published.or(self.updated);
        Some(Entry { link, title: plain(&self.title), published })
    }
}

/// Parses a link. Some feeds escape links twice, so `&amp;` is undone again: a URL does not contain it.
pub(crate) fn link(text: &str, base: &WebUrl) -> Option<WebUrl> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_FIELD_BYTES {
        return None;
    }
    base.join(&text.replace("&amp;", "&")).ok()
}

/// A title as one line of plain text, without markup.
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

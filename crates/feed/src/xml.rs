//! A tolerant XML tokenizer that no syntax error stops.
//!
//! It takes linear time, keeps no state but its position, and expands no entities that the document declares, so entity
//! bombs are harmless.

use std::borrow::Cow;

use crate::references::undo;

/// A piece of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XmlToken<'a> {
    /// A start tag; `is_empty` for `<a/>`.
    Open { name: &'a str, attributes: Attributes<'a>, is_empty: bool },
    /// An end tag.
    Close { name: &'a str },
    /// Text that may contain references.
    Text(&'a str),
    /// Literal text.
    Verbatim(&'a str),
}

/// The pieces of a document, in order.
pub(crate) struct Tokens<'a> {
    rest: &'a str,
    /// Whether the document ends within an unterminated construct.
    pub(crate) is_cut: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(document: &'a str) -> Tokens<'a> {
        Tokens { rest: document, is_cut: false }
    }

    /// Skips past the next `end` and returns the text before it.
    fn until(&mut self, end: &str) -> Option<&'a str> {
        match self.rest.split_once(end) {
            Some((inner, rest)) => {
                self.rest = rest;
                Some(inner)
            }
            None => {
                self.rest = "";
                self.is_cut = true;
                None
            }
        }
    }

    fn text(&mut self, from: usize) -> Option<XmlToken<'a>> {
        let next = self.rest.get(from..)?.find('<').map_or(self.rest.len(), |at| from + at);
        let (text, rest) = self.rest.split_at_checked(next)?;
        self.rest = rest;
        Some(XmlToken::Text(text))
    }

    /// Skips a construct that starts with `<!` or `<?` and is not text.
    fn skip_declaration(&mut self) -> Option<()> {
        if let Some(comment) = self.rest.strip_prefix("<!--") {
            self.rest = comment;
            self.until("-->")?;
        } else if self.rest.starts_with("<?") {
            self.until(">")?;
        } else {
            let declaration = self.until(">")?;
            // The internal subset of a DOCTYPE is in brackets.
            if declaration.contains('[') && !declaration.contains(']') {
                self.until("]")?;
                self.until(">")?;
            }
        }
        Some(())
    }

    fn open(&mut self) -> Option<XmlToken<'a>> {
        let tag = self.rest.strip_prefix('<')?;
        let Some((inner, rest)) = split_tag(tag) else {
            (self.rest, self.is_cut) = ("", true);
            return None;
        };
        self.rest = rest;
        let (inner, is_empty) = match inner.strip_suffix('/') {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        let name_ends = inner.find(|c: char| c.is_whitespace() || c == '/');
        let (name, attributes) = inner.split_at_checked(name_ends.unwrap_or(inner.len()))?;
        Some(XmlToken::Open { name, attributes: Attributes(attributes), is_empty })
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = XmlToken<'a>;

    fn next(&mut self) -> Option<XmlToken<'a>> {
        loop {
            let Some(after) = self.rest.strip_prefix('<') else {
                return if self.rest.is_empty() { None } else { self.text(0) };
            };
            if let Some(verbatim) = self.rest.strip_prefix("<![CDATA[") {
                self.rest = verbatim;
                return self.until("]]>").map(XmlToken::Verbatim);
            }
            if let Some(name) = after.strip_prefix('/') {
                self.rest = name;
                return self.until(">").map(|name| XmlToken::Close { name: name.trim() });
            }
            match after.chars().next() {
                Some('!' | '?') => self.skip_declaration()?,
                Some(first) if first.is_alphabetic() || first == '_' => return self.open(),
                // A bare `<`, which should have been escaped.
                _ => return self.text(1),
            }
        }
    }
}

/// Splits the content of a tag from what follows it. A tag cannot contain a `<`: if one comes first, the end of the tag
/// or a quote is missing.
fn split_tag(tag: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (byte, quote) {
            (b'>', None) => return Some((tag.get(..at)?, tag.get(at + 1..)?)),
            (b'<', _) => {
                let unclosed = tag.get(..at)?;
                return Some(match unclosed.find('>') {
                    Some(end) => (tag.get(..end)?, tag.get(end + 1..)?),
                    None => (unclosed, tag.get(at..)?),
                });
            }
            (b'"' | b'\'', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            _ => {}
        }
    }
    let end = tag.find('>')?;
    Some((tag.get(..end)?, tag.get(end + 1..)?))
}

/// The unparsed attributes of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes<'a>(&'a str);

impl<'a> Attributes<'a> {
    /// The value of the first attribute with this name, ignoring case; the name includes the prefix.
    pub(crate) fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.find(|found| found.eq_ignore_ascii_case(name))
    }

    /// The same, by the name without its prefix.
    pub(crate) fn get_local(self, name: &str) -> Option<Cow<'a, str>> {
        self.find(|found| local(found).eq_ignore_ascii_case(name))
    }

    fn find(self, wanted: impl Fn(&str) -> bool) -> Option<Cow<'a, str>> {
        let mut rest = self.0;
        while let Some((name, after)) = rest.split_once('=') {
            let (value, after) = value(after.trim_start());
            // Words before the name are attributes without a value.
            let name = name.split_whitespace().last().unwrap_or_default();
            if wanted(name) {
                return Some(undo(value));
            }
            rest = after;
        }
        None
    }
}

/// A value, quoted or not, and the rest after it.
fn value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A name without its prefix.
pub(crate) fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// The prefix of a name; empty if it has none.
pub(crate) fn prefix(name: &str) -> &str {
    name.rsplit_once(':').map_or("", |(prefix, _)| prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document as its pieces, in short.
    fn pieces(document: &str) -> String {
        let mut tokens = Tokens::new(document);
        let shown: Vec<String> = tokens
            .by_ref()
            .map(|token| match token {
                XmlToken::Open { name, attributes, is_empty } => {
                    let link = attributes.get("href").map(|href| format!(" {href}"));
                    let end = if is_empty { "/" } else { "" };
                    format!("<{name}{}{end}>", link.unwrap_or_default())
                }
                XmlToken::Close { name } => format!("</{name}>"),
                XmlToken::Text(text) => text.to_owned(),
                XmlToken::Verbatim(text) => format!("[{text}]"),
            })
            .collect();
        format!("{}{}", shown.concat(), if tokens.is_cut { "…" } else { "" })
    }

    #[test]
    fn faults_cost_no_more_than_themselves() {
        for (document, want) in [
            ("<a href='x'>y</a>", "<a x>y</a>"),
            ("<?xml version='1.0'?><!-- <b> --><a/>", "<a/>"),
            ("<a><![CDATA[1 < 2 & ]]></a >", "<a>[1 < 2 & ]</a>"),
            ("<a>1 < 2</a>", "<a>1 < 2</a>"),
            ("<a href=x title=\"1 > 0\" >y", "<a x>y"),
            ("<a href='?a=1&amp;b=2&c=3'/>", "<a ?a=1&b=2&c=3/>"),
            ("<a href=\"x><b/>", "<a x><b/>"),
            ("<a href='x'<b/>", "<a x><b/>"),
            ("<!DOCTYPE x [<!ENTITY a 'b>'>]><a>&a;</a>", "<a>&a;</a>"),
            ("<!DOCTYPE x SYSTEM 'y'><a/>", "<a/>"),
            ("<a>x<!-- y", "<a>x…"),
            ("<a>x<![CDATA[y", "<a>x…"),
            ("<a>x<b hr", "<a>x…"),
            ("<a>x</a", "<a>x…"),
            ("<a>x<", "<a>x<"),
            ("", ""),
        ] {
            assert_eq!(pieces(document), want, "{document}");
        }
    }

    #[test]
    fn names_have_two_parts_at_most() {
        assert_eq!((prefix("atom:link"), local("atom:link")), ("atom", "link"));
        assert_eq!((prefix("link"), local("link")), ("", "link"));
    }
}

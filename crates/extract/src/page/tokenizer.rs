//! Splits the source into tags and text; skips comments and content that is not for readers.

use memchr::memmem;
use memchr::{memchr, memchr3};

use super::tag::Tag;

/// A piece of the page, borrowed from its source.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Text(&'a str),
    Start {
        tag: Tag,
        name: &'a str,
        /// The name and the attributes.
        source: &'a str,
    },
    End {
        tag: Tag,
        name: &'a str,
    },
    /// A script's attributes and content.
    Script {
        attributes: &'a str,
        content: &'a str,
    },
    Noscript {
        content: &'a str,
    },
}

/// Reads the source once. An unterminated construct (a comment, a quote, a script) extends to the end of the page, as
/// in the standard, so nothing is searched twice.
pub(super) struct Tokenizer<'a> {
    source: &'a str,
    at: usize,
    /// The content of the title is text up to its end tag, even if it looks like markup.
    in_title: bool,
    /// Elements whose end tag is not in the rest of the page. It is searched only once.
    endless: Vec<Tag>,
}

impl<'a> Tokenizer<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Tokenizer { source, at: 0, in_title: false, endless: Vec::new() }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.source.get(start..end).unwrap_or_default()
    }

    /// Reads markup that begins with `<`. `None` if it is not for readers.
    fn markup(&mut self) -> Option<Token<'a>> {
        let bytes = self.source.as_bytes();
        let is_end = bytes.get(self.at + 1) == Some(&b'/');
        let name_start = self.at + if is_end { 2 } else { 1 };
        if !bytes.get(name_start).is_some_and(u8::is_ascii_alphabetic) {
            self.skip_declaration();
            return None;
        }
        let name_end = name_start + name_length(bytes.get(name_start..).unwrap_or_default());
        let name = self.slice(name_start, name_end);
        let Some(end) = tag_end(bytes, name_end) else {
            self.at = bytes.len();
            return None;
        };
        self.at = end + 1;
        let tag = Tag::from_name(name);
        if is_end {
            return Some(Token::End { tag, name });
        }
        let attributes = self.slice(name_end, end);
        if tag.is_skipped() {
            return self.skip_content(tag, name, attributes);
        }
        self.in_title = tag == Tag::Title;
        Some(Token::Start { tag, name, source: self.slice(name_start, end) })
    }

    fn skip_content(&mut self, tag: Tag, name: &str, attributes: &'a str) -> Option<Token<'a>> {
        if attributes.ends_with('/') && tag != Tag::Script {
            return None;
        }
        if self.endless.contains(&tag) {
            return None;
        }
        let start = self.at;
        let bytes = end_tag_of(name, self.rest());
        // Browsers read the page that follows an image without an end, but not what follows a script without one.
        if start + bytes == self.source.len() && holds_markup(tag) {
            self.endless.push(tag);
            return None;
        }
        self.at += bytes;
        let content = self.slice(start, self.at);
        match tag {
            Tag::Script => Some(Token::Script { attributes, content }),
            Tag::Noscript => Some(Token::Noscript { content }),
            _ => None,
        }
    }

    /// A comment, a declaration, or an end tag without a name.
    fn skip_declaration(&mut self) {
        let rest = self.rest().as_bytes();
        // `<!-->` is a complete comment, so its end may overlap its beginning.
        let end = if rest.starts_with(b"<!--") {
            rest.get(2..).and_then(|inside| memmem::find(inside, b"-->")).map(|end| end + 5)
        } else {
            memchr(b'>', rest).map(|end| end + 1)
        };
        self.at += end.unwrap_or(rest.len());
    }
}

impl<'a> Iterator for Tokenizer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while self.at < self.source.len() {
            let text_bytes = match std::mem::take(&mut self.in_title) {
                true => end_tag_of("title", self.rest()),
                false => next_markup(self.rest().as_bytes()),
            };
            if text_bytes > 0 {
                let start = self.at;
                self.at += text_bytes;
                return Some(Token::Text(self.slice(start, self.at)));
            }
            if let Some(token) = self.markup() {
                return Some(token);
            }
        }
        None
    }
}

/// Whether the skipped content is markup, not plain text.
fn holds_markup(tag: Tag) -> bool {
    matches!(tag, Tag::Canvas | Tag::Math | Tag::Object | Tag::Svg | Tag::Template)
}

/// The start of the next tag or comment. Any other `<` is text.
fn next_markup(source: &[u8]) -> usize {
    let mut from = 0;
    while let Some(found) = source.get(from..).and_then(|rest| memchr(b'<', rest)) {
        let at = from + found;
        match source.get(at + 1) {
            Some(b'/' | b'!' | b'?') => return at,
            Some(byte) if byte.is_ascii_alphabetic() => return at,
            _ => from = at + 1,
        }
    }
    source.len()
}

fn name_length(source: &[u8]) -> usize {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
    source.iter().position(is_end).unwrap_or(source.len())
}

/// The position of the `>` that ends a tag. One in a quoted value does not end it, and a quote counts only where a
/// value may begin.
fn tag_end(source: &[u8], name_end: usize) -> Option<usize> {
    let mut at = name_end;
    loop {
        at += memchr3(b'>', b'"', b'\'', source.get(at..)?)?;
        let quote = *source.get(at)?;
        if quote == b'>' {
            return Some(at);
        }
        let before = source.get(name_end..at)?.trim_ascii_end();
        at += 1;
        if before.last() == Some(&b'=') {
            at += memchr(quote, source.get(at..)?)? + 1;
        }
    }
}

/// The start of the end tag with this name, else the end of the source.
fn end_tag_of(name: &str, source: &str) -> usize {
    let bytes = source.as_bytes();
    let is_end_tag = |at: &usize| {
        let after = bytes.get(at + 2..).unwrap_or_default();
        after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            && after.get(name.len()).is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'-')
    };
    memmem::find_iter(bytes, b"</").find(is_end_tag).unwrap_or(source.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens in a short form: `<p|attributes>`, `</p>`, text as it is.
    fn check(html: &str, want: &[&str]) {
        let got: Vec<_> = Tokenizer::new(html)
            .map(|token| match token {
                Token::Text(text) => text.to_owned(),
                Token::Start { name, source, .. } => {
                    format!("<{name}|{}>", source.strip_prefix(name).unwrap())
                }
                Token::End { name, .. } => format!("</{name}>"),
                Token::Script { attributes, content } => format!("{{{attributes}|{content}}}"),
                Token::Noscript { content } => format!("{{{content}}}"),
            })
            .collect();
        assert_eq!(got, want, "{html}");
    }

    #[test]
    fn tags_and_text() {
        check("a<p class=x>b</p >c", &["a", "<p| class=x>", "b", "</p>", "c"]);
        check("<a t='>' u=\"<\">x", &["<a| t='>' u=\"<\">", "x"]);
        check("<a t=don't>x", &["<a| t=don't>", "x"]);
        check("<a t = '>' b'>x", &["<a| t = '>' b'>", "x"]);
    }

    #[test]
    fn a_lone_bracket_is_text() {
        check("1 < 2 <3 <", &["1 < 2 <3 <"]);
    }

    #[test]
    fn comments_and_declarations_are_skipped() {
        check("<!DOCTYPE html>a<!-- <b> -->b<!-->c<?php x ?>d</>e", &["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn scripts_are_skipped_and_titles_are_text() {
        check(
            "a<SCRIPT x>if (a</b>c) </scripty></Script>b",
            &["a", "{ x|if (a</b>c) </scripty>}", "</Script>", "b"],
        );
        check("<svg/>a<svg><p>x</svg>b", &["a", "</svg>", "b"]);
        check("<title>a <b> c</title>d", &["<title|>", "a <b> c", "</title>", "d"]);
    }

    #[test]
    fn an_image_that_never_ends_does_not_hide_the_rest() {
        check("a<svg><path d=x><p>b<svg>c", &["a", "<path| d=x>", "<p|>", "b", "c"]);
        check("<svg>x</svg>a<svg><p>b", &["</svg>", "a", "<p|>", "b"]);
    }

    #[test]
    fn what_never_ends_reaches_to_the_end() {
        for tail in ["<!-- x", "<style>x", "<a href=\"x>y", "<a", "</a", "<a b", "<!", "<title"] {
            check(&format!("text{tail}"), &["text"]);
        }
        check("text<script>x", &["text", "{|x}"]);
    }
}

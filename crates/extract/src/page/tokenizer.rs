//! Source text becomes tags and text; comments and what nobody reads are skipped.

use super::tag::Tag;

/// A piece of the page, borrowed from its source.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Text(&'a str),
    Start { tag: Tag, name: &'a str, attributes: &'a str },
    End { tag: Tag, name: &'a str },
}

/// Goes through the source once. What has no end (a comment, a quote, a script) reaches to the
/// end of the page, as the standard has it; so nothing is ever searched twice.
pub(super) struct Tokenizer<'a> {
    rest: &'a str,
    /// The title's content is text up to its end tag, whatever it looks like.
    in_title: bool,
}

impl<'a> Tokenizer<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Tokenizer { rest: html, in_title: false }
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        passed
    }

    fn text(&mut self) -> Token<'a> {
        let end = match self.in_title {
            true => end_tag_of("title", self.rest),
            false => next_markup(self.rest),
        };
        self.in_title = false;
        Token::Text(self.advance(end))
    }

    /// What begins with `<`. None where it is nothing that anybody reads.
    fn markup(&mut self) -> Option<Token<'a>> {
        if self.rest.starts_with("<!--") {
            // `<!-->` is a whole comment, so its end may begin within its beginning.
            self.skip_past("-->", 2);
            return None;
        }
        let is_end = self.rest.starts_with("</");
        let inside = self.rest.get(if is_end { 2 } else { 1 }..).unwrap_or_default();
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.skip_past(">", 1);
            return None;
        }
        let is_name_end = |c: char| c.is_ascii_whitespace() || c == '/' || c == '>';
        let (name, after_name) = inside.split_at_checked(inside.find(is_name_end)?)?;
        let (attributes, after_tag) = match tag_end(after_name) {
            Some(end) => after_name.split_at_checked(end)?,
            None => (after_name, ""),
        };
        let is_closed = !after_tag.is_empty();
        self.rest = after_tag.get(1..).unwrap_or_default();
        let tag = Tag::from_name(name);
        if is_end || !is_closed {
            return is_closed.then_some(Token::End { tag, name });
        }
        if tag.is_skipped() {
            if !attributes.ends_with('/') || tag == Tag::Script {
                self.advance(end_tag_of(name, self.rest));
            }
            return None;
        }
        self.in_title = tag == Tag::Title;
        Some(Token::Start { tag, name, attributes })
    }

    fn skip_past(&mut self, end: &str, from: usize) {
        let found = self.rest.get(from..).and_then(|rest| rest.find(end));
        self.advance(found.map_or(self.rest.len(), |at| from + at + end.len()));
    }
}

impl<'a> Iterator for Tokenizer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while !self.rest.is_empty() {
            if self.in_title || next_markup(self.rest) > 0 {
                return Some(self.text());
            }
            let before = self.rest.len();
            if let Some(token) = self.markup() {
                return Some(token);
            }
            // An unfinished name at the very end: nothing follows it.
            if self.rest.len() == before {
                self.rest = "";
            }
        }
        None
    }
}

/// Where the next tag or comment begins. A `<` that begins none is text.
fn next_markup(source: &str) -> usize {
    let bytes = source.as_bytes();
    let begins_markup = |at: &usize| {
        bytes
            .get(at + 1)
            .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'!' | b'?'))
    };
    source.match_indices('<').map(|(at, _)| at).find(begins_markup).unwrap_or(source.len())
}

/// Where the `>` stands that ends a tag. One in a quoted value does not, and a quote counts only
/// where a value may begin.
fn tag_end(after_name: &str) -> Option<usize> {
    let bytes = after_name.as_bytes();
    let mut at = 0;
    let mut may_begin_value = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => return Some(at),
            b'"' | b'\'' if may_begin_value => {
                at += 1 + after_name.get(at + 1..)?.find(char::from(byte))?;
                may_begin_value = false;
            }
            b'=' => may_begin_value = true,
            _ if byte.is_ascii_whitespace() => {}
            _ => may_begin_value = false,
        }
        at += 1;
    }
    None
}

/// Where the end tag of this name begins, else the end of the source.
fn end_tag_of(name: &str, source: &str) -> usize {
    let is_end_tag = |at: &usize| {
        let after = source.get(at + 2..).unwrap_or_default().as_bytes();
        after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            && after.get(name.len()).is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'-')
    };
    source.match_indices("</").map(|(at, _)| at).find(is_end_tag).unwrap_or(source.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens in a short form: `<p|attributes>`, `</p>`, text as it is.
    fn check(html: &str, want: &[&str]) {
        let got: Vec<_> = Tokenizer::new(html)
            .map(|token| match token {
                Token::Text(text) => text.to_owned(),
                Token::Start { name, attributes, .. } => format!("<{name}|{attributes}>"),
                Token::End { name, .. } => format!("</{name}>"),
            })
            .collect();
        assert_eq!(got, want, "{html}");
    }

    #[test]
    fn tags_and_text() {
        check("a<p class=x>b</p >c", &["a", "<p| class=x>", "b", "</p>", "c"]);
        check("<a t='>' u=\"<\">x", &["<a| t='>' u=\"<\">", "x"]);
        check("<a t=don't>x", &["<a| t=don't>", "x"]);
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
        check("a<SCRIPT>if (a</b>c) </scripty></Script>b", &["a", "</Script>", "b"]);
        check("<svg/>a<svg><p>x</svg>b", &["a", "</svg>", "b"]);
        check("<title>a <b> c</title>d", &["<title|>", "a <b> c", "</title>", "d"]);
    }

    #[test]
    fn what_never_ends_reaches_to_the_end() {
        for tail in ["<!-- x", "<script>x", "<a href=\"x>y", "<a", "</a", "<a b", "<!", "<title"] {
            check(&format!("text{tail}"), &["text"]);
        }
    }
}

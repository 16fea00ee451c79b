//! Parses the Markdown subset that articles use into blocks for a page.
//!
//! Nothing here writes HTML: a block consists of text, links and emphasis, and the template escapes the first two.
//! Unknown syntax is treated as text.

/// A piece of an article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// A heading within the article.
    Heading(Vec<Span>),
    Paragraph(Vec<Span>),
    List(Vec<Vec<Span>>),
    Quote(Vec<Span>),
    /// Preformatted text.
    Code(String),
}

/// A run of text with one format, or a part of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    /// An http or https URL; anything else is not a link.
    pub(super) link: Option<String>,
    pub(super) is_strong: bool,
    pub(super) is_emphasis: bool,
}

impl Span {
    fn looks_like(&self, other: &Span) -> bool {
        self.link == other.link
            && self.is_strong == other.is_strong
            && self.is_emphasis == other.is_emphasis
    }
}

/// The blocks of a text, without a first heading that repeats the title.
pub(super) fn blocks(markdown: &str, title: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut paragraphs = markdown.split("\n\n").map(|piece| piece.trim_matches('\n')).peekable();
    while let Some(piece) = paragraphs.next() {
        if let Some(first) = piece.strip_prefix("```") {
            blocks.push(code(first, &mut paragraphs));
        } else if let Some(block) = block(piece) {
            blocks.push(block);
        }
    }
    let repeats = |block: &Block| matches!(block, Block::Heading(spans) if plain(spans) == title);
    if blocks.first().is_some_and(repeats) {
        blocks.remove(0);
    }
    blocks
}

/// A code block continues across empty lines, up to its closing fence or the end.
fn code<'a>(first: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> Block {
    let mut text = first.split_once('\n').map_or("", |(_, lines)| lines).to_owned();
    while !text.contains("```") {
        let Some(more) = rest.next() else { break };
        text.push_str("\n\n");
        text.push_str(more);
    }
    Block::Code(text.split("```").next().unwrap_or_default().trim_end().to_owned())
}

fn block(piece: &str) -> Option<Block> {
    let piece = piece.trim();
    if piece.is_empty() || piece.chars().all(|c| "-*_ ".contains(c)) {
        return None;
    }
    if piece.starts_with('#') && !piece.contains('\n') {
        return Some(Block::Heading(spans(piece.trim_start_matches('#').trim())));
    }
    let lines: Vec<&str> = piece.lines().collect();
    if lines.iter().all(|line| line.starts_with('>')) {
        let text: Vec<&str> =
            lines.iter().map(|line| line.trim_start_matches('>').trim()).collect();
        return Some(Block::Quote(spans(&text.join(" "))));
    }
    if item(lines[0]).is_some() {
        let mut items: Vec<String> = Vec::new();
        for line in lines {
            match (item(line), items.last_mut()) {
                (Some(text), _) => items.push(text.to_owned()),
                (None, Some(last)) => last.push_str(&format!(" {}", line.trim())),
                (None, None) => items.push(line.trim().to_owned()),
            }
        }
        return Some(Block::List(items.iter().map(|text| spans(text)).collect()));
    }
    Some(Block::Paragraph(spans(&lines.join(" "))))
}

/// The text after a list marker.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if let Some(text) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some(text);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (1..=3).contains(&digits).then(|| line[digits..].strip_prefix(". ")).flatten()
}

/// Parses links and emphasis; images are omitted.
fn spans(text: &str) -> Vec<Span> {
    let mut inline = Inline::default();
    inline.read(text, None);
    inline.spans
}

/// Reads a line from left to right. Each mark is examined once, so that the time stays linear.
#[derive(Default)]
struct Inline {
    spans: Vec<Span>,
    is_strong: bool,
    is_emphasis: bool,
}

impl Inline {
    /// Reads a text; `link` is set if it is the text of a link.
    fn read(&mut self, text: &str, link: Option<&str>) {
        let mut rest = text;
        while let Some(at) = rest.find(['\\', '`', '*', '[', '!']) {
            let (before, mark) = rest.split_at(at);
            self.push(before, link);
            rest = self.read_mark(mark, link);
        }
        self.push(rest, link);
    }

    /// Reads a mark, or a character that only looks like one, at the start of the text. Returns the rest.
    fn read_mark<'a>(&mut self, text: &'a str, link: Option<&str>) -> &'a str {
        if let Some(escaped) = text.strip_prefix('\\') {
            // A backslash escapes punctuation.
            let sign = escaped.chars().next().filter(char::is_ascii_punctuation);
            let (sign, after) = escaped.split_at(sign.map_or(0, char::len_utf8));
            self.push(if sign.is_empty() { "\\" } else { sign }, link);
            return after;
        }
        if text.starts_with('`') {
            let (code, after) = code_span(text);
            self.push(code, link);
            return after;
        }
        if let Some(after) = text.strip_prefix("**") {
            let is_mark = toggles(self.is_strong, after, "**");
            self.is_strong ^= is_mark;
            self.push(if is_mark { "" } else { "**" }, link);
            return after;
        }
        if let Some(after) = text.strip_prefix('*') {
            let is_mark = toggles(self.is_emphasis, after, "*");
            self.is_emphasis ^= is_mark;
            self.push(if is_mark { "" } else { "*" }, link);
            return after;
        }
        let image = text.strip_prefix('!');
        match self::link(image.unwrap_or(text)) {
            Some((_, _, after)) if image.is_some() => after,
            Some((words, address, after)) if link.is_none() => {
                self.read(words, Some(address));
                after
            }
            _ => {
                let (sign, after) = text.split_at(1);
                self.push(sign, link);
                after
            }
        }
    }

    fn push(&mut self, text: &str, link: Option<&str>) {
        if text.is_empty() {
            return;
        }
        let span = Span {
            text: text.to_owned(),
            link: link.filter(|address| is_web_address(address)).map(str::to_owned),
            is_strong: self.is_strong,
            is_emphasis: self.is_emphasis,
        };
        match self.spans.last_mut().filter(|last| last.looks_like(&span)) {
            Some(last) => last.text.push_str(text),
            None => self.spans.push(span),
        }
    }
}

/// Whether a mark opens or closes emphasis. It closes an open one; it opens one only if text follows immediately and
/// there is a closing mark later.
fn toggles(is_open: bool, after: &str, mark: &str) -> bool {
    let touches = after.starts_with(|c: char| !c.is_whitespace() && c != '*');
    let touches = touches || (mark == "**" && after.starts_with('*'));
    is_open || (touches && after.contains(mark))
}

/// The code at the start of a text, and the rest. Marks in code have no meaning. Without a closing fence it is text.
fn code_span(text: &str) -> (&str, &str) {
    let after = text.trim_start_matches('`');
    let (fence, _) = text.split_at(text.len() - after.len());
    match after.split_once(fence) {
        Some((code, after)) => (code.trim_matches(' '), after.trim_start_matches('`')),
        None => (fence, after),
    }
}

/// The text and the URL of a link at the start of a text, and the rest.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let inside = text.strip_prefix('[')?;
    let end = end_of_words(inside)?;
    let words = &inside[..end];
    let rest = inside[end..].strip_prefix("](")?;
    if let Some(enclosed) = rest.strip_prefix('<') {
        let (address, after) = enclosed.split_at(enclosed.find(['<', '>', '\n'])?);
        return Some((words, address, after.strip_prefix(">)")?));
    }
    let (address, after) = rest.split_at(rest.find([' ', '(', ')'])?);
    // A title may follow the URL.
    let (_, after) = after.split_at(after.find(['(', ')'])?);
    Some((words, address, after.strip_prefix(')')?))
}

/// The position of the `]` that ends the text of a link. The text may contain an image but no other brackets.
fn end_of_words(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let mut is_in_image = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' if is_in_image => return None,
            '[' => is_in_image = true,
            ']' if is_in_image => is_in_image = false,
            ']' => return Some(at),
            _ => {}
        }
    }
    None
}

fn plain(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// Whether this may be the target of a link.
pub(super) fn is_web_address(text: &str) -> bool {
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    begins("https://") || begins("http://")
}

/// Whether this is safe as the value of a `lang` attribute.
pub(super) fn is_language(code: &str) -> bool {
    (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Span {
        Span { text: text.to_owned(), ..Span::default() }
    }

    fn strong(words: &str) -> Span {
        Span { is_strong: true, ..text(words) }
    }

    fn emphasis(words: &str) -> Span {
        Span { is_emphasis: true, ..text(words) }
    }

    fn linked(words: &str, address: &str) -> Span {
        Span { link: Some(address.to_owned()), ..text(words) }
    }

    #[test]
    fn an_article_is_made_of_blocks() {
        let markdown = "# The title\n\nA **bold** word and [a link](https://a.test/x \"t\"),\nand more.\n\n\
                        ## Part\n\n> Somebody\n> said it\n\n- one\n- two\n  goes on\n\n1. first\n\n---\n\n\
                        ```\nlet x = 1;\n\nlet y = 2;\n```\n\n![photo](https://a.test/p.jpg) words";
        let link = linked("a link", "https://a.test/x");
        let first = vec![text("A "), strong("bold"), text(" word and "), link, text(", and more.")];
        let expected = [
            Block::Paragraph(first),
            Block::Heading(vec![text("Part")]),
            Block::Quote(vec![text("Somebody said it")]),
            Block::List(vec![vec![text("one")], vec![text("two goes on")]]),
            Block::List(vec![vec![text("first")]]),
            Block::Code("let x = 1;\n\nlet y = 2;".to_owned()),
            Block::Paragraph(vec![text(" words")]),
        ];
        assert_eq!(blocks(markdown, "The title"), expected);
        assert_eq!(blocks(markdown, "Another").len(), expected.len() + 1);
    }

    #[test]
    fn bold_and_italic_are_told_apart_and_other_stars_stay() {
        let both = Span { is_emphasis: true, ..strong("both") };
        for (markdown, expected) in [
            ("a **b** c", vec![text("a "), strong("b"), text(" c")]),
            ("a *b* c", vec![text("a "), emphasis("b"), text(" c")]),
            ("***both***", vec![both.clone()]),
            ("**a *both***", vec![strong("a "), Span { text: "both".to_owned(), ..both.clone() }]),
            ("*a **both***", vec![emphasis("a "), both]),
            ("un**believ**able", vec![text("un"), strong("believ"), text("able")]),
            (r"2 \* 3 \*\* 4", vec![text("2 * 3 ** 4")]),
            ("2 * 3 * 4", vec![text("2 * 3 * 4")]),
            ("a * b", vec![text("a * b")]),
            ("*open", vec![text("*open")]),
            ("**open", vec![text("**open")]),
            ("`**no**` and `` a`b ``", vec![text("**no** and a`b")]),
            ("`open", vec![text("`open")]),
            (
                "[**b** c](https://a.test/x)",
                vec![
                    Span { is_strong: true, ..linked("b", "https://a.test/x") },
                    linked(" c", "https://a.test/x"),
                ],
            ),
            (
                "**[b](https://a.test/x)**",
                vec![Span { is_strong: true, ..linked("b", "https://a.test/x") }],
            ),
            ("[b](<https://a.test/x_(y)>).", vec![linked("b", "https://a.test/x_(y)"), text(".")]),
            (r"\[1\](note) and [a", vec![text("[1](note) and [a")]),
            (r"Yes\![b](https://a.test/x)", vec![text("Yes!"), linked("b", "https://a.test/x")]),
            ("![alt](https://a.test/p.jpg)Oh! *b*", vec![text("Oh! "), emphasis("b")]),
            (
                "[![alt](https://a.test/p.jpg) b](https://a.test/x)",
                vec![linked(" b", "https://a.test/x")],
            ),
            (r"a \ b", vec![text(r"a \ b")]),
        ] {
            assert_eq!(spans(markdown), expected, "{markdown}");
        }
    }

    /// Of a page that is made to cost time, too.
    #[test]
    fn a_long_line_of_marks_takes_no_long_time() {
        for mark in ["[", "[a](", "[a](x", "*a", "**a", "`", "``a`", "![", "\\", "*", "[a](<"] {
            let line = mark.repeat(200_000);
            assert!(spans(&line).len() <= line.len(), "{mark}");
        }
    }

    #[test]
    fn nothing_but_the_web_is_linked_to() {
        for address in
            ["javascript:alert(1", "data:text/html,x", "//a.test", "/x", "vbscript:x", "http:x", ""]
        {
            let found = spans(&format!("[x]({address})"));
            assert!(found.iter().all(|span| span.link.is_none()), "{address}: {found:?}");
        }
        assert!(is_web_address("HTTPS://a.test") && !is_web_address("httpä://a"));
        assert!(is_language("de") && !is_language("d\" onload=") && !is_language(""));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_link_elsewhere(text in "[\\[\\]()!#>*`\\- \n.0-9a-zä\\\\:/]{0,200}") {
            for block in blocks(&text, "") {
                let spans: Vec<Span> = match block {
                    Block::Heading(spans) | Block::Paragraph(spans) | Block::Quote(spans) => spans,
                    Block::List(items) => items.concat(),
                    Block::Code(_) => Vec::new(),
                };
                prop_assert!(spans.iter().filter_map(|span| span.link.as_ref()).all(|link| is_web_address(link)));
            }
        }
    }
}

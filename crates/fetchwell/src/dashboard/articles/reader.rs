//! Markdown, as far as articles have it, in blocks that a page can be made of.
//!
//! Nothing here writes HTML: a block is text and links, and the template escapes both. What is not
//! understood is text.

/// A piece of an article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// A heading within the article.
    Heading(Vec<Span>),
    /// A paragraph.
    Paragraph(Vec<Span>),
    /// A list.
    List(Vec<Vec<Span>>),
    /// Somebody else's words.
    Quote(Vec<Span>),
    /// Text whose lines stay as they are.
    Code(String),
}

/// Text, or a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    /// An address on the web; anything else is no link.
    pub(super) link: Option<String>,
}

/// The blocks of a text; a heading at its beginning that repeats the title is left out.
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

/// Code goes on over empty lines, to its fence or to the end.
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

/// What stands behind the mark of a list.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if let Some(text) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some(text);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (1..=3).contains(&digits).then(|| line[digits..].strip_prefix(". ")).flatten()
}

/// Text with its links: `[words](address)`; an image is left out.
fn spans(text: &str) -> Vec<Span> {
    let (mut spans, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('[') {
        let Some((words, address, after)) = link(&rest[at..]) else {
            let (before, behind) = rest.split_at(at + 1);
            push(&mut spans, before);
            rest = behind;
            continue;
        };
        let is_image = rest[..at].ends_with('!');
        push(&mut spans, if is_image { &rest[..at - 1] } else { &rest[..at] });
        if !is_image {
            let link = is_web_address(address).then(|| address.to_owned());
            spans.push(Span { text: without_marks(words), link });
        }
        rest = after;
    }
    push(&mut spans, rest);
    spans
}

/// The words and the address of a link at the beginning of a text, and what follows it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (words, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (address, after) = rest.split_once(')')?;
    let address = address.split(' ').next().unwrap_or_default().trim_matches(['<', '>']);
    (!words.contains('[')).then_some((words, address, after))
}

fn push(spans: &mut Vec<Span>, text: &str) {
    if text.is_empty() {
        return;
    }
    let text = without_marks(text);
    match spans.last_mut().filter(|last| last.link.is_none()) {
        Some(last) => last.text.push_str(&text),
        None => spans.push(Span { text, link: None }),
    }
}

/// Without what makes text bold, and without the strokes that keep signs from being marks.
fn without_marks(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek().is_some_and(char::is_ascii_punctuation) => {
                plain.extend(chars.next());
            }
            '*' if chars.peek() == Some(&'*') => drop(chars.next()),
            '`' => {}
            _ => plain.push(c),
        }
    }
    plain
}

fn plain(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// Whether a link may lead there.
pub(super) fn is_web_address(text: &str) -> bool {
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    begins("https://") || begins("http://")
}

/// Whether a page may say that it is written in it.
pub(super) fn is_language(code: &str) -> bool {
    (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Span {
        Span { text: text.to_owned(), link: None }
    }

    #[test]
    fn an_article_is_made_of_blocks() {
        let markdown = "# The title\n\nA **bold** word and [a link](https://a.test/x \"t\"),\nand more.\n\n\
                        ## Part\n\n> Somebody\n> said it\n\n- one\n- two\n  goes on\n\n1. first\n\n---\n\n\
                        ```\nlet x = 1;\n\nlet y = 2;\n```\n\n![photo](https://a.test/p.jpg) words";
        let link = Span { text: "a link".to_owned(), link: Some("https://a.test/x".to_owned()) };
        let expected = [
            Block::Paragraph(vec![text("A bold word and "), link, text(", and more.")]),
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

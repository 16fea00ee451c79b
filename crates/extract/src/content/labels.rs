//! Lines of an article that are not part of its text: labels, buttons, lines about the author, and headings at the end
//! whose section was left out.

use std::ops::Range;

use crate::entities;
use crate::fold::one_line;
use crate::page::{NodeKind, Page, Tag};
use crate::text_stats::TextStats;

/// A label has less text and at most this many words, and does not end like a sentence.
const MAX_LABEL_BYTES: usize = 80;
const MAX_LABEL_WORDS: usize = 13;

/// A line with at least this much text is a paragraph.
const MIN_PARAGRAPH_BYTES: usize = 80;

/// An article consists of paragraphs if they have this many times as much text as long lines outside of them.
const MIN_PARAGRAPH_RATIO: usize = 4;

/// Labels have at most this share of an article's text. If short lines have more, they are its text.
const MAX_LABELS_PERCENT: usize = 15;

/// The maximum length of a paragraph about the author.
const MAX_BIOGRAPHY_BYTES: usize = 1_500;

/// The maximum number of authors to look for.
const MAX_AUTHORS: usize = 10;

/// Drops such lines from an article by these authors. `all` measures the page, `kept` what is left of it.
pub(super) fn drop(
    page: &Page<'_>,
    all: &TextStats,
    kept: &TextStats,
    root: &Range<usize>,
    authors: &[String],
    dropped: &mut [bool],
) {
    let mut lines = lines(page, kept, root, dropped);
    drop_labels(page, &mut lines, dropped);
    drop_authors(page, &mut lines, authors, dropped);
    drop_last_headings(page, all, root.end, &lines, dropped);
}

/// A piece of text without the beginning or the end of a block in it.
struct Line {
    /// From its first piece of text to its last one.
    nodes: Range<usize>,
    text_bytes: usize,
    /// The level of the heading that it belongs to.
    heading: Option<usize>,
    /// Whether no element around or in it says what it is: a paragraph, an item, a cell, code.
    is_bare: bool,
}

impl Line {
    fn is_paragraph(&self) -> bool {
        self.text_bytes >= MIN_PARAGRAPH_BYTES
    }

    /// The text on one line, without what is left out.
    fn text(&self, page: &Page<'_>, dropped: &[bool]) -> String {
        let mut text = String::new();
        let mut index = self.nodes.start;
        while let Some(node) = page.nodes.get(index).filter(|_| index < self.nodes.end) {
            let is_dropped = dropped.get(index) == Some(&true);
            if let (NodeKind::Text(source), false) = (&node.kind, is_dropped) {
                text.push_str(&entities::decode(source));
            }
            index = if is_dropped { node.end } else { index + 1 };
        }
        one_line(&text)
    }

    /// Whether its first piece of text begins with this.
    fn begins_with(&self, page: &Page<'_>, start: &str) -> bool {
        let first = page.nodes.get(self.nodes.start).map(|node| &node.kind);
        matches!(first, Some(NodeKind::Text(source))
            if entities::decode(source).trim_start().starts_with(start))
    }

    fn drop(&self, page: &Page<'_>, dropped: &mut [bool]) {
        for index in self.nodes.clone() {
            if let Some((node, mark)) = page.nodes.get(index).zip(dropped.get_mut(index)) {
                *mark |= matches!(node.kind, NodeKind::Text(_));
            }
        }
    }
}

/// The lines that are kept so far.
fn lines(page: &Page<'_>, kept: &TextStats, root: &Range<usize>, dropped: &[bool]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut is_new = true;
    let mut code_end = 0;
    let mut index = root.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < root.end) {
        while open.pop_if(|open| open.end <= index).is_some() {
            is_new = true;
        }
        if dropped.get(index) == Some(&true) {
            is_new |= matches!(&node.kind, NodeKind::Element(element) if element.tag.is_block());
            index = node.end;
            continue;
        }
        let text_bytes = kept.text_bytes(&(index..index + 1));
        index += 1;
        match &node.kind {
            NodeKind::Element(element) if element.tag.is_block() => {
                let around = open.last().copied().unwrap_or_default();
                open.push(Open {
                    end: node.end,
                    heading: element.tag.heading_level().or(around.heading),
                    is_named: around.is_named || is_named(element.tag),
                });
                is_new = true;
            }
            NodeKind::Element(element)
                if matches!(element.tag, Tag::Code | Tag::Kbd | Tag::Samp) =>
            {
                code_end = node.end;
            }
            NodeKind::Text(_) if text_bytes > 0 => {
                match lines.last_mut().filter(|_| !is_new) {
                    Some(line) => {
                        line.nodes.end = index;
                        line.text_bytes += text_bytes;
                    }
                    None => {
                        let Open { heading, is_named, .. } =
                            open.last().copied().unwrap_or_default();
                        let nodes = index - 1..index;
                        lines.push(Line { nodes, text_bytes, heading, is_bare: !is_named });
                    }
                }
                if let Some(line) = lines.last_mut().filter(|_| index <= code_end) {
                    line.is_bare = false;
                }
                is_new = false;
            }
            _ => {}
        }
    }
    lines
}

/// A block around the current node.
#[derive(Clone, Copy, Default)]
struct Open {
    end: usize,
    heading: Option<usize>,
    is_named: bool,
}

/// Whether the element says what its text is.
fn is_named(tag: Tag) -> bool {
    use Tag::*;
    tag.is_heading()
        || matches!(
            tag,
            Blockquote
                | Caption
                | Dd
                | Details
                | Dt
                | Figcaption
                | Li
                | P
                | Pre
                | Summary
                | Td
                | Th
        )
}

/// In an article that consists of paragraphs, a short text outside of them is a label, as of a button or a picture.
fn drop_labels(page: &Page<'_>, lines: &mut Vec<Line>, dropped: &mut [bool]) {
    let bytes = |fits: &dyn Fn(&&Line) -> bool| -> usize {
        lines.iter().filter(fits).map(|line| line.text_bytes).sum()
    };
    let in_paragraphs = bytes(&|line| line.is_paragraph() && !line.is_bare);
    let outside = bytes(&|line| line.is_paragraph() && line.is_bare);
    if in_paragraphs == 0 || in_paragraphs < outside * MIN_PARAGRAPH_RATIO {
        return;
    }
    let is_label = |line: &&Line| {
        line.is_bare && line.text_bytes < MAX_LABEL_BYTES && is_label(&line.text(page, dropped))
    };
    let labels: Vec<usize> = lines.iter().filter(is_label).map(|line| line.nodes.start).collect();
    let in_labels = bytes(&|line| labels.binary_search(&line.nodes.start).is_ok());
    if in_labels * 100 <= bytes(&|_| true) * MAX_LABELS_PERCENT {
        lines.retain(|line| {
            let is_label = labels.binary_search(&line.nodes.start).is_ok();
            if is_label {
                line.drop(page, dropped);
            }
            !is_label
        });
    }
}

fn is_label(text: &str) -> bool {
    let is_closing = |c: char| matches!(c, '"' | '\'' | ')' | '”' | '’' | '»');
    let ends = ['.', '!', '?', '…', ':', ';', '。', '！', '？', '：'];
    !text.trim_end_matches(is_closing).ends_with(ends)
        && text.split(' ').nth(MAX_LABEL_WORDS).is_none()
}

/// Drops lines that are an author's name, and after the middle of the article, paragraphs that begin with it: they are
/// about the author.
fn drop_authors(page: &Page<'_>, lines: &mut Vec<Line>, authors: &[String], dropped: &mut [bool]) {
    // One word may be the first word of any sentence.
    let authors = authors.iter().filter(|name| name.contains(' ')).take(MAX_AUTHORS);
    let authors: Vec<&String> = authors.collect();
    let Some(middle) = lines.get(lines.len() / 2).map(|line| line.nodes.start) else { return };
    let names_author = |line: &Line, name: &str, dropped: &[bool]| {
        // Reading every line would take longer than looking at its first word.
        let first_word = name.split(' ').next().unwrap_or_default();
        line.begins_with(page, first_word)
            && line.text(page, dropped).strip_prefix(name).is_some_and(|rest| {
                rest.is_empty() || (line.nodes.start > middle && rest.starts_with([' ', ',']))
            })
    };
    lines.retain(|line| {
        let may_be_about = line.heading.is_none() && line.text_bytes <= MAX_BIOGRAPHY_BYTES;
        let is_about = may_be_about && authors.iter().any(|name| names_author(line, name, dropped));
        if is_about {
            line.drop(page, dropped);
        }
        !is_about
    });
}

/// Drops the headings at the end of the article whose section was left out: what other pages say about the subject,
/// comments. Within the article, a list of products may consist of headings whose text was left out.
fn drop_last_headings(
    page: &Page<'_>,
    all: &TextStats,
    root_end: usize,
    lines: &[Line],
    dropped: &mut [bool],
) {
    for line in lines.iter().rev() {
        let left_out_bytes = all.text_bytes(&(line.nodes.end..root_end));
        let is_title = line.heading.is_some() && is_label(&line.text(page, dropped));
        if !is_title || left_out_bytes <= line.text_bytes {
            break;
        }
        line.drop(page, dropped);
    }
}

//! The article as plain text.

use crate::content::Content;
use crate::entities;
use crate::fold::{Piece, pieces, visible};
use crate::limits::{TookTooLong, Watch};
use crate::page::{Element, Page, Tag};
use crate::walk::{NodeVisitor, walk};

/// A shorter paragraph is a date line or a caption, not an abstract.
const MIN_ABSTRACT_CHARS: usize = 40;

/// The text of an article.
pub(crate) struct PlainText {
    /// Blocks, separated by blank lines.
    pub(crate) text: String,
    /// The first block that is a paragraph and long enough, else empty.
    pub(crate) first_paragraph: String,
}

/// Writes the content of the page, without the headline unless there is nothing else: a post may consist of its title.
pub(crate) fn write(
    page: &Page<'_>,
    content: &Content,
    headline: Option<usize>,
    watch: &Watch<'_>,
) -> Result<PlainText, TookTooLong> {
    let plain = write_without(headline, page, content, watch)?;
    if headline.is_some() && plain.text.is_empty() {
        write_without(None, page, content, watch)
    } else {
        Ok(plain)
    }
}

fn write_without(
    headline: Option<usize>,
    page: &Page<'_>,
    content: &Content,
    watch: &Watch<'_>,
) -> Result<PlainText, TookTooLong> {
    let mut writer = Writer { headline, ..Writer::default() };
    walk(page, content, &mut writer, watch)?;
    Ok(PlainText { text: writer.out, first_paragraph: writer.first_paragraph })
}

#[derive(Default)]
struct Writer {
    headline: Option<usize>,
    out: String,
    first_paragraph: String,
    block: String,
    is_space_due: bool,
    /// The number of open `pre` elements, in which white space is kept.
    preformatted: usize,
    /// The number of open headings, which are not paragraphs.
    headings: usize,
}

impl Writer {
    fn end_block(&mut self) {
        let block = self.block.trim_matches(['\n', ' ']);
        if !block.is_empty() {
            if !self.out.is_empty() {
                self.out.push_str("\n\n");
            }
            self.out.push_str(block);
            let is_paragraph = self.headings == 0 && self.preformatted == 0;
            if is_paragraph && self.first_paragraph.is_empty() && is_long_enough(block) {
                self.first_paragraph = block.to_owned();
            }
        }
        self.block.clear();
        self.is_space_due = false;
    }

    fn line_break(&mut self) {
        if self.block.ends_with('\n') && self.preformatted == 0 {
            self.end_block();
        } else {
            self.block.push('\n');
            self.is_space_due = false;
        }
    }

    fn words(&mut self, words: &str) {
        if self.is_space_due && !self.block.is_empty() && !self.block.ends_with('\n') {
            self.block.push(' ');
        }
        self.is_space_due = false;
        self.block.push_str(words);
    }
}

impl NodeVisitor for Writer {
    fn enter(&mut self, index: usize, element: &Element<'_>) -> bool {
        if self.headline == Some(index) {
            return false;
        }
        match element.tag {
            Tag::Br => self.line_break(),
            tag if tag.is_cell() => self.is_space_due = true,
            tag if tag.is_block() => self.end_block(),
            _ => {}
        }
        self.preformatted += usize::from(element.tag == Tag::Pre);
        self.headings += usize::from(element.tag.is_heading());
        true
    }

    fn leave(&mut self, _: usize, element: &Element<'_>) {
        match element.tag {
            tag if tag.is_cell() => self.is_space_due = true,
            tag if tag.is_block() => self.end_block(),
            _ => {}
        }
        self.preformatted -= usize::from(element.tag == Tag::Pre);
        self.headings -= usize::from(element.tag.is_heading());
    }

    fn text(&mut self, source: &str) {
        let text = entities::decode(source);
        if self.preformatted > 0 {
            self.block.push_str(&visible(&text));
            return;
        }
        for piece in pieces(&text) {
            match piece {
                Piece::Space => self.is_space_due = true,
                Piece::Words(words) => self.words(&words),
            }
        }
    }

    fn part_ends(&mut self) {
        self.end_block();
    }
}

fn is_long_enough(block: &str) -> bool {
    block.chars().nth(MIN_ABSTRACT_CHARS).is_some()
}

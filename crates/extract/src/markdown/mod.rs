//! The article as Markdown (CommonMark, with the pipe tables of GitHub).
//!
//! No markup of the page passes through: text is escaped, and every mark is ours.

mod blocks;
mod code;
mod escape;
mod line;
mod table;

use url::Url;

use crate::content::Content;
use crate::entities;
use crate::fold::{Piece, one_line, pieces};
use crate::limits::{TookTooLong, Watch};
use crate::links::{absolute, image_address};
use crate::page::{Element, Page, Tag};
use crate::walk::{NodeVisitor, walk};

use blocks::Blocks;
use line::{Line, Span};
use table::Table;

/// Writes the content of the page. URLs and indentation may each add `max_added_bytes` to it.
pub(crate) fn write(
    page: &Page<'_>,
    content: &Content,
    base_url: &Url,
    max_added_bytes: usize,
    watch: &Watch<'_>,
) -> Result<String, TookTooLong> {
    let mut writer = Writer {
        page,
        base_url,
        address_bytes_left: max_added_bytes,
        blocks: Blocks::new(max_added_bytes),
        line: Line::default(),
        headings: Vec::new(),
        table: None,
    };
    walk(page, content, &mut writer, watch)?;
    Ok(writer.blocks.finish())
}

struct Writer<'p, 'a> {
    page: &'p Page<'a>,
    base_url: &'p Url,
    address_bytes_left: usize,
    blocks: Blocks,
    line: Line,
    /// The levels of the open headings.
    headings: Vec<usize>,
    table: Option<Table>,
}

impl Writer<'_, '_> {
    /// Ends the current paragraph or heading. A table has none.
    fn end_block(&mut self) {
        if self.table.is_some() {
            self.line.space();
            return;
        }
        let text = self.line.finish();
        if text.is_empty() {
            return;
        }
        match self.headings.last() {
            Some(level) => {
                let marks = "#".repeat(*level);
                self.blocks.write(&format!("{marks} {}", text.replace("  \n", " ")));
            }
            None => self.blocks.write(&escape::paragraph(&text)),
        }
    }

    fn line_break(&mut self) {
        if self.table.is_some() {
            self.line.space();
        } else if self.line.ends_with_break() {
            self.end_block();
        } else {
            self.line.line_break();
        }
    }

    fn block_starts(&mut self, index: usize, element: &Element<'_>) -> bool {
        self.end_block();
        match element.tag {
            Tag::Hr if self.table.is_none() => self.blocks.write("---"),
            Tag::Blockquote => self.blocks.open_quote(index),
            Tag::Ul | Tag::Menu => self.blocks.open_list(index, None),
            Tag::Ol => {
                let start = element.attribute("start").and_then(|start| start.trim().parse().ok());
                self.blocks.open_list(index, Some(start.unwrap_or(1)));
            }
            Tag::Li => self.blocks.open_item(index),
            Tag::Pre if self.table.is_none() => {
                if let Some(block) = code::block(&self.page.raw_text(index)) {
                    self.blocks.write(&block);
                }
                return false;
            }
            Tag::Table if self.table.is_none() => self.table = Table::open(self.page, index),
            Tag::Tr => self.end_row(),
            tag => self.headings.extend(tag.heading_level()),
        }
        true
    }

    fn end_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.end_row();
        }
    }

    fn end_cell(&mut self, element: &Element<'_>) {
        match &mut self.table {
            Some(table) => table.cell(element, &self.line.finish()),
            None => self.end_block(),
        }
    }

    /// The table is written when it ends, so its caption precedes it.
    fn end_caption(&mut self) {
        self.blocks.write(&escape::paragraph(&self.line.finish()));
    }

    /// A URL as a link destination; `None` once the page has used up its limit.
    fn destination(&mut self, url: Option<Url>) -> Option<String> {
        let destination = escape::destination(url?.as_str());
        self.address_bytes_left = self.address_bytes_left.checked_sub(destination.len())?;
        Some(destination)
    }

    fn link_starts(&mut self, index: usize, element: &Element<'_>) {
        if self.address_bytes_left > 0
            && let Some(reference) = element.attribute("href").filter(|href| !href.starts_with('#'))
            && let Some(destination) = self.destination(absolute(self.base_url, &reference))
        {
            self.line.open(index, Span::Link(destination));
        }
    }

    fn image(&mut self, element: &Element<'_>) {
        if self.address_bytes_left > 0
            && let Some(destination) = self.destination(image_address(self.base_url, element))
        {
            let alt = one_line(&element.attribute("alt").unwrap_or_default());
            self.line.raw(&format!("![{}]({destination})", escape::text(&alt)));
        }
    }
}

impl NodeVisitor for Writer<'_, '_> {
    fn enter(&mut self, index: usize, element: &Element<'_>) -> bool {
        match element.tag {
            Tag::Br => self.line_break(),
            Tag::Img => self.image(element),
            Tag::A => self.link_starts(index, element),
            Tag::B | Tag::Strong => self.line.open(index, Span::Strong),
            Tag::I | Tag::Em => self.line.open(index, Span::Emphasis),
            Tag::S | Tag::Strike | Tag::Del => self.line.open(index, Span::Struck),
            Tag::Code | Tag::Kbd | Tag::Samp => {
                if let Some(code) = code::span(&self.page.raw_text(index)) {
                    self.line.raw(&code);
                }
                return false;
            }
            tag if tag.is_block() => return self.block_starts(index, element),
            _ => {}
        }
        true
    }

    fn leave(&mut self, index: usize, element: &Element<'_>) {
        let tag = element.tag;
        match tag {
            Tag::Td | Tag::Th => self.end_cell(element),
            Tag::Caption => self.end_caption(),
            _ if tag.is_block() => self.end_block(),
            _ => self.line.close(index),
        }
        self.blocks.close(index);
        if tag.is_heading() {
            self.headings.pop();
        }
        if tag == Tag::Tr {
            self.end_row();
        }
        if let Some(table) = self.table.take_if(|table| table.node == index) {
            self.blocks.write(&table.finish());
        }
    }

    fn text(&mut self, source: &str) {
        for piece in pieces(&entities::decode(source)) {
            match piece {
                Piece::Space => self.line.space(),
                Piece::Words(words) => self.line.raw(&escape::text(&words)),
            }
        }
    }

    fn part_ends(&mut self) {
        self.end_block();
    }
}

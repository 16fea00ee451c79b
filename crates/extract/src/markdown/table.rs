//! Pipe tables.

use crate::page::{NodeKind, Page, Tag};

/// A cell with more text contains a part of the page, not a value.
const MAX_CELL_BYTES: usize = 500;

/// The table that is being written.
pub(super) struct Table {
    /// The element that opened it.
    pub(super) node: usize,
    columns: usize,
    cells_in_row: usize,
    has_header: bool,
    rows: String,
}

impl Table {
    /// Begins a data table. `None` for a layout table, whose cells are written as blocks. The scan ends at the next
    /// nested table, so all scans together visit each node once.
    pub(super) fn open(page: &Page<'_>, node: usize) -> Option<Table> {
        let mut columns = 0;
        let mut cells_in_row = 0;
        let mut cell_bytes = 0;
        for inside in page.nodes.get(page.subtree(node))?.iter().skip(1) {
            match &inside.kind {
                NodeKind::Text(text) => cell_bytes += text.trim().len(),
                NodeKind::Element(element) => match element.tag {
                    Tag::Tr => cells_in_row = 0,
                    tag if tag.is_cell() => {
                        cell_bytes = 0;
                        cells_in_row += 1;
                        columns = columns.max(cells_in_row);
                    }
                    tag if holds_blocks(tag) => return None,
                    _ => {}
                },
            }
            if cell_bytes > MAX_CELL_BYTES {
                return None;
            }
        }
        let table =
            Table { node, columns, cells_in_row: 0, has_header: false, rows: String::new() };
        (columns > 1).then_some(table)
    }

    pub(super) fn cell(&mut self, text: &str) {
        if self.cells_in_row == 0 && !self.rows.is_empty() {
            self.rows.push('\n');
        }
        self.cells_in_row += 1;
        self.rows.push_str("| ");
        self.rows.push_str(&text.replace('|', "\\|"));
        self.rows.push(' ');
    }

    /// The first row is the header. It gets all columns, because its number of columns decides how many are shown.
    pub(super) fn end_row(&mut self) {
        if self.cells_in_row == 0 {
            return;
        }
        if !self.has_header {
            self.has_header = true;
            for _ in self.cells_in_row..self.columns {
                self.rows.push_str("| ");
            }
            self.rows.push_str("|\n");
            self.rows.push_str(&"| --- ".repeat(self.columns));
        }
        self.rows.push('|');
        self.cells_in_row = 0;
    }

    pub(super) fn finish(mut self) -> String {
        self.end_row();
        self.rows
    }
}

fn holds_blocks(tag: Tag) -> bool {
    matches!(tag, Tag::Blockquote | Tag::Dl | Tag::Ol | Tag::Pre | Tag::Table | Tag::Ul)
        || tag.is_heading()
}

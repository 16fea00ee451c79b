//! Pipe tables.

use crate::page::{Element, NodeKind, Page, Tag};

/// A cell with more text contains a part of the page, not a value.
const MAX_CELL_BYTES: usize = 500;

/// Cells that span several rows or columns count only in this many columns: each is examined in every row.
const MAX_SPANNED_COLUMNS: usize = 64;

/// How many empty cells are written for the spans of a table, per cell that it has. Without a limit, a few bytes of a
/// page could become thousands.
const MAX_PADDING_PER_CELL: usize = 4;

/// The table that is being written.
pub(super) struct Table {
    /// The element that opened it.
    pub(super) node: usize,
    columns: usize,
    grid: Grid,
    padding_left: usize,
    cells_in_row: usize,
    has_header: bool,
    rows: String,
}

impl Table {
    /// Begins a data table. `None` for a layout table, whose cells are written as blocks. The scan ends at the next
    /// nested table, so all scans together visit each node once.
    pub(super) fn open(page: &Page<'_>, node: usize) -> Option<Table> {
        let mut grid = Grid::default();
        let mut columns = 0;
        let mut cells = 0;
        let mut cells_in_row = 0;
        let mut most_in_row = 0;
        let mut cell_bytes = 0;
        for inside in page.nodes.get(page.subtree(node))?.iter().skip(1) {
            match &inside.kind {
                NodeKind::Text(text) => cell_bytes += text.trim().len(),
                NodeKind::Element(element) => match element.tag {
                    Tag::Tr => {
                        cells_in_row = 0;
                        grid.next_row();
                    }
                    tag if tag.is_cell() => {
                        cell_bytes = 0;
                        cells += 1;
                        cells_in_row += 1;
                        most_in_row = most_in_row.max(cells_in_row);
                        grid.skip_covered();
                        grid.place(Spans::of(element), MAX_SPANNED_COLUMNS);
                        columns = columns.max(grid.column);
                    }
                    tag if holds_blocks(tag) => return None,
                    _ => {}
                },
            }
            if cell_bytes > MAX_CELL_BYTES {
                return None;
            }
        }
        let padding_left = cells * MAX_PADDING_PER_CELL;
        let table = Table {
            node,
            columns: columns.min(most_in_row.max(padding_left)),
            grid: Grid::default(),
            padding_left,
            cells_in_row: 0,
            has_header: false,
            rows: String::new(),
        };
        (most_in_row > 1).then_some(table)
    }

    pub(super) fn cell(&mut self, element: &Element<'_>, text: &str) {
        if self.cells_in_row == 0 && !self.rows.is_empty() {
            self.rows.push('\n');
        }
        self.cells_in_row += 1;
        let covered = self.grid.skip_covered();
        self.pad(covered);
        self.rows.push_str("| ");
        self.rows.push_str(&text.replace('|', "\\|"));
        self.rows.push(' ');
        let spanned = self.grid.place(Spans::of(element), self.columns);
        self.pad(spanned);
    }

    /// Writes empty cells where a cell reaches to from above or from the left, so that the next one is under its
    /// header.
    fn pad(&mut self, cells: usize) {
        let affordable = cells.min(self.padding_left);
        self.padding_left -= affordable;
        self.rows.push_str(&"| ".repeat(affordable));
    }

    /// The first row is the header. It gets all columns, because its number of columns decides how many are shown.
    pub(super) fn end_row(&mut self) {
        if self.cells_in_row == 0 {
            return;
        }
        if !self.has_header {
            self.has_header = true;
            let missing = self.columns.saturating_sub(self.grid.column);
            self.rows.push_str(&"| ".repeat(missing));
            self.rows.push_str("|\n");
            self.rows.push_str(&"| --- ".repeat(self.columns));
        }
        self.rows.push('|');
        self.cells_in_row = 0;
        self.grid.next_row();
    }

    pub(super) fn finish(mut self) -> String {
        self.end_row();
        self.rows
    }
}

/// How many columns and rows a cell takes.
#[derive(Clone, Copy)]
struct Spans {
    columns: usize,
    rows: usize,
}

impl Spans {
    fn of(cell: &Element<'_>) -> Spans {
        let number = |name: &str| {
            let value = cell.attribute(name)?;
            value.trim().parse().ok().filter(|number| *number > 0)
        };
        Spans { columns: number("colspan").unwrap_or(1), rows: number("rowspan").unwrap_or(1) }
    }
}

/// Where the next cell goes, and which columns cells from above reach into.
#[derive(Default)]
struct Grid {
    column: usize,
    /// For each column, how many further rows a cell from above takes.
    covered: Vec<usize>,
}

impl Grid {
    /// Ends a row. Columns behind its last cell may be covered, too.
    fn next_row(&mut self) {
        for rows in self.covered.iter_mut().skip(self.column) {
            *rows = rows.saturating_sub(1);
        }
        self.column = 0;
    }

    /// Goes on to the next column that is free; returns the number of those between.
    fn skip_covered(&mut self) -> usize {
        let from = self.column;
        while let Some(rows) = self.covered.get_mut(self.column).filter(|rows| **rows > 0) {
            *rows -= 1;
            self.column += 1;
        }
        self.column - from
    }

    /// Places a cell; returns the number of columns that it takes beside its first one.
    fn place(&mut self, spans: Spans, max_columns: usize) -> usize {
        let first = self.column;
        let end = first.saturating_add(spans.columns).min(max_columns).max(first + 1);
        if spans.rows > 1 && end <= MAX_SPANNED_COLUMNS {
            self.covered.resize(self.covered.len().max(end), 0);
            for rows in self.covered.iter_mut().take(end).skip(first) {
                *rows = spans.rows - 1;
            }
        }
        self.column = end;
        end - first - 1
    }
}

fn holds_blocks(tag: Tag) -> bool {
    matches!(tag, Tag::Blockquote | Tag::Dl | Tag::Ol | Tag::Pre | Tag::Table | Tag::Ul)
        || tag.is_heading()
}

//! Text tables.

use crate::console::terminal::printable;

/// Longer cells are truncated; JSON output has all of it.
const WIDEST: usize = 60;

/// Makes text from outside safe for a terminal, and truncates it.
pub(crate) fn plain(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Formats rows in columns under a header.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let head = head.map(str::to_owned);
    let mut widths = [0; N];
    for row in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in [&head].into_iter().chain(rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

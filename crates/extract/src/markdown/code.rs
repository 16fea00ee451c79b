//! Code, which is not escaped: its fence is longer than any run of backticks in it.

use crate::fold::{one_line, visible};

/// Inline code. `None` if there is nothing visible.
pub(super) fn span(text: &str) -> Option<String> {
    let code = one_line(text);
    if code.is_empty() {
        return None;
    }
    let fence = "`".repeat(longest_run(&code) + 1);
    let gap = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    Some(format!("{fence}{gap}{code}{gap}{fence}"))
}

/// A code block. `None` if there is nothing visible.
pub(super) fn block(text: &str) -> Option<String> {
    let code = visible(text).replace("\r\n", "\n").replace('\r', "\n");
    let code = code.strip_prefix('\n').unwrap_or(&code).trim_end();
    if code.is_empty() {
        return None;
    }
    let fence = "`".repeat(longest_run(code).max(2) + 1);
    Some(format!("{fence}\n{code}\n{fence}"))
}

fn longest_run(code: &str) -> usize {
    code.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_long_enough() {
        assert_eq!(span(" a\n b ").as_deref(), Some("`a b`"));
        assert_eq!(span("`x`").as_deref(), Some("`` `x` ``"));
        assert_eq!(span(" "), None);
        assert_eq!(block("\na\n  b\n").as_deref(), Some("```\na\n  b\n```"));
        assert_eq!(block("```").as_deref(), Some("````\n```\n````"));
    }
}

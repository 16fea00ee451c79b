//! Text that the page repeats: sliders, copies for small screens, quoted posts.

use std::collections::HashSet;
use std::ops::Range;

use crate::fold::one_line;
use crate::page::{NodeKind, Page};

/// A shorter block may be repeated legitimately: a label, a heading.
const MIN_REPEATED_BYTES: usize = 60;

/// Drops the innermost blocks whose text has occurred before.
pub(super) fn drop(page: &Page<'_>, root: &Range<usize>, dropped: &mut [bool]) {
    let mut seen = HashSet::new();
    let mut last: Option<Range<usize>> = None;
    let mut index = root.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < root.end) {
        if dropped.get(index) == Some(&true) {
            index = node.end;
            continue;
        }
        if matches!(&node.kind, NodeKind::Element(element) if element.tag.is_block()) {
            if let Some(leaf) = last.take_if(|last| last.end <= index) {
                judge(page, &leaf, &mut seen, dropped);
            }
            last = Some(index..node.end);
        }
        index += 1;
    }
    if let Some(leaf) = last {
        judge(page, &leaf, &mut seen, dropped);
    }
}

fn judge(page: &Page<'_>, leaf: &Range<usize>, seen: &mut HashSet<String>, dropped: &mut [bool]) {
    let text = one_line(&page.raw_text(leaf.start));
    if text.len() >= MIN_REPEATED_BYTES
        && !seen.insert(text)
        && let Some(mark) = dropped.get_mut(leaf.start)
    {
        *mark = true;
    }
}

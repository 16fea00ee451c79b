//! Walks through the article, for the writers.

use std::ops::Range;

use crate::content::Content;
use crate::limits::{TookTooLong, Watch};
use crate::page::{Element, NodeKind, Page};

/// Receives the content of a page in document order.
pub(crate) trait NodeVisitor {
    /// An element begins. If this returns false, its content is skipped, and [`leave`](NodeVisitor::leave) is not
    /// called for it.
    fn enter(&mut self, index: usize, element: &Element<'_>) -> bool;
    /// An element ends.
    fn leave(&mut self, index: usize, element: &Element<'_>);
    /// Text as in the source, not decoded.
    fn text(&mut self, source: &str);
    /// A part of the content ends; what follows stands elsewhere on the page.
    fn part_ends(&mut self);
}

/// Passes the content to the visitor. It does not recurse, because the depth is untrusted input.
pub(crate) fn walk(
    page: &Page<'_>,
    content: &Content,
    visitor: &mut impl NodeVisitor,
    watch: &Watch<'_>,
) -> Result<(), TookTooLong> {
    for part in content.parts() {
        walk_part(page, part.clone(), &content.dropped, visitor, watch)?;
        visitor.part_ends();
    }
    Ok(())
}

fn walk_part(
    page: &Page<'_>,
    part: Range<usize>,
    dropped: &[bool],
    visitor: &mut impl NodeVisitor,
    watch: &Watch<'_>,
) -> Result<(), TookTooLong> {
    let mut open: Vec<(usize, usize, &Element<'_>)> = Vec::new();
    let mut index = part.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < part.end) {
        watch.step()?;
        while let Some((opened, _, element)) = open.pop_if(|(_, end, _)| *end <= index) {
            visitor.leave(opened, element);
        }
        let is_dropped = dropped.get(index) == Some(&true);
        match &node.kind {
            _ if is_dropped => index = node.end,
            NodeKind::Text(source) => {
                visitor.text(source);
                index += 1;
            }
            NodeKind::Element(element) if visitor.enter(index, element) => {
                open.push((index, node.end, element));
                index += 1;
            }
            NodeKind::Element(_) => index = node.end,
        }
    }
    while let Some((opened, _, element)) = open.pop() {
        visitor.leave(opened, element);
    }
    Ok(())
}

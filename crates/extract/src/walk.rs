//! One way through the article, for whoever writes it out.

use crate::content::Content;
use crate::limits::{TookTooLong, Watch};
use crate::page::{Element, NodeKind, Page};

/// Is shown what is kept of a page, in document order.
pub(crate) trait Visitor {
    /// An element begins. If the answer is no, its content is passed over and it does not
    /// [`leave`](Visitor::leave).
    fn enter(&mut self, index: usize, element: &Element<'_>) -> bool;
    /// An element ends.
    fn leave(&mut self, index: usize, element: &Element<'_>);
    /// Text as it stands in the source.
    fn text(&mut self, source: &str);
}

/// Shows the content to the visitor. A loop, not a recursion: depth comes from outside.
pub(crate) fn walk(
    page: &Page<'_>,
    content: &Content,
    visitor: &mut impl Visitor,
    watch: &Watch<'_>,
) -> Result<(), TookTooLong> {
    let mut open: Vec<(usize, usize, &Element<'_>)> = Vec::new();
    let mut index = content.root.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < content.root.end) {
        watch.step()?;
        while let Some((opened, _, element)) = open.pop_if(|(_, end, _)| *end <= index) {
            visitor.leave(opened, element);
        }
        let is_dropped = content.dropped.get(index) == Some(&true);
        match &node.kind {
            NodeKind::Text(source) => {
                visitor.text(source);
                index += 1;
            }
            NodeKind::Element(element) if !is_dropped && visitor.enter(index, element) => {
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

//! Builds nodes from tokens: nesting, with the end tags that authors leave out.

use super::tag::Tag;
use super::tokenizer::{Token, Tokenizer};
use super::{Element, Node, NodeKind, Page, attributes};
use crate::limits::{TookTooLong, Watch};

/// The rest is not read: no article begins that late.
const MAX_HTML_BYTES: usize = 16 << 20;

/// Deeper elements become siblings.
const MAX_DEPTH: usize = 400;

/// How many levels are searched for the element that a tag closes. Without a limit, a tag in a deep page would cost as
/// much as hundreds.
const MAX_LOOK_OUT: usize = 64;

/// The rest is left out: ten megabytes of tags must not take half a gigabyte of memory.
const MAX_NODES: usize = 400_000;

/// Parses the source into nodes in document order, and the scripts that hold data.
pub(super) fn build<'a>(
    html: &'a str,
    max_text_bytes: usize,
    watch: &Watch<'_>,
) -> Result<Page<'a>, TookTooLong> {
    let html = html.get(..html.floor_char_boundary(MAX_HTML_BYTES)).unwrap_or(html);
    let mut builder = Builder::default();
    builder.nodes.reserve((html.len() / BYTES_A_NODE).min(MAX_NODES));
    let mut text_bytes_left = max_text_bytes;
    let mut is_cut = false;
    for token in Tokenizer::new(html) {
        watch.step()?;
        if builder.nodes.len() >= MAX_NODES {
            break;
        }
        match token {
            Token::Text(text) if text.len() > text_bytes_left => {
                let kept = text.get(..text.floor_char_boundary(text_bytes_left));
                builder.push(NodeKind::Text(kept.unwrap_or_default()));
                is_cut = true;
                break;
            }
            Token::Text(text) => {
                text_bytes_left -= text.len();
                builder.push(NodeKind::Text(text));
            }
            Token::Start { tag, name, source } => builder.start(tag, name, source),
            Token::End { tag, name } => builder.end(tag, name),
            Token::Script { attributes, content } => builder.script(attributes, content),
            Token::Noscript { content } if builder.noscript.len() < MAX_NOSCRIPT => {
                builder.noscript.push(content);
            }
            Token::Noscript { .. } => {}
        }
    }
    builder.close_from(0);
    let Builder { nodes, json_ld, noscript, .. } = builder;
    Ok(Page { nodes, json_ld, noscript, is_cut })
}

/// A page has about one node per this many bytes; memory for them is allocated at once.
const BYTES_A_NODE: usize = 48;

/// Further scripts with data are ignored.
const MAX_JSON_LD: usize = 64;

/// The same for `noscript` elements.
const MAX_NOSCRIPT: usize = 64;

#[derive(Default)]
struct Builder<'a> {
    nodes: Vec<Node<'a>>,
    json_ld: Vec<&'a str>,
    noscript: Vec<&'a str>,
    open: Vec<Open<'a>>,
    /// How many elements are open beyond the maximum depth; their end tags close nothing.
    too_deep: usize,
}

struct Open<'a> {
    node: usize,
    tag: Tag,
    /// Tells elements with [`Tag::Other`] apart.
    name: &'a str,
}

impl<'a> Builder<'a> {
    fn push(&mut self, kind: NodeKind<'a>) {
        let end = self.nodes.len() + 1;
        self.nodes.push(Node { kind, end });
    }

    fn start(&mut self, tag: Tag, name: &'a str, source: &'a str) {
        self.close_implied(tag);
        let node = self.nodes.len();
        self.push(NodeKind::Element(Element::new(tag, name.len(), source)));
        if tag.is_void() {
            return;
        }
        if self.open.len() < MAX_DEPTH {
            self.open.push(Open { node, tag, name });
        } else {
            self.too_deep += 1;
        }
    }

    fn script(&mut self, attributes: &'a str, content: &'a str) {
        let is_json_ld = attributes::parse(attributes)
            .any(|(key, value)| key.eq_ignore_ascii_case("type") && value.contains("ld+json"));
        if is_json_ld && self.json_ld.len() < MAX_JSON_LD {
            self.json_ld.push(content);
        }
    }

    fn end(&mut self, tag: Tag, name: &str) {
        // Content after the end of the body still belongs to the page.
        if matches!(tag, Tag::Body | Tag::Html) || tag.is_void() || tag.is_skipped() {
            return;
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let is_match = |open: &Open<'_>| match tag {
            Tag::Other => open.tag == Tag::Other && open.name.eq_ignore_ascii_case(name),
            _ => open.tag == tag || (open.tag.is_heading() && tag.is_heading()),
        };
        self.close_nearest(is_match, barrier_for_end(tag));
    }

    /// Closes the elements that a start tag closes implicitly.
    fn close_implied(&mut self, tag: Tag) {
        if tag.is_block() {
            self.close_nearest(|open| open.tag == Tag::P, Tag::is_block);
        }
        if !tag.is_head_content() && self.open.last().is_some_and(|open| open.tag == Tag::Head) {
            self.close_from(self.open.len() - 1);
        }
        if let Some((is_closed, is_barrier)) = implied_end(tag) {
            self.close_nearest(|open| is_closed(open.tag), is_barrier);
        }
    }

    /// Closes the innermost open element that matches and everything in it, unless there is a barrier further inside.
    fn close_nearest(&mut self, fits: impl Fn(&Open<'a>) -> bool, is_barrier: TagTest) {
        for (depth, open) in self.open.iter().enumerate().rev().take(MAX_LOOK_OUT) {
            if fits(open) {
                self.close_from(depth);
                return;
            }
            if is_barrier(open.tag) {
                return;
            }
        }
    }

    fn close_from(&mut self, depth: usize) {
        let end = self.nodes.len();
        for open in self.open.drain(depth..) {
            if let Some(node) = self.nodes.get_mut(open.node) {
                node.end = end;
            }
        }
    }
}

type TagTest = fn(Tag) -> bool;

/// The elements that a start tag closes, and the barriers to that search.
fn implied_end(tag: Tag) -> Option<(TagTest, TagTest)> {
    use Tag::*;
    match tag {
        A => Some((|t| t == A, Tag::is_block)),
        Li => Some((|t| t == Li, |t| matches!(t, Ul | Ol | Menu | Table))),
        Dt | Dd => Some((|t| matches!(t, Dt | Dd), |t| matches!(t, Dl | Table))),
        SelectOption => Some((|t| t == SelectOption, |t| t == Select)),
        Td | Th => Some((Tag::is_cell, |t| matches!(t, Tr | Table))),
        Tr => Some((|t| t == Tr, |t| t == Table)),
        Thead | Tbody | Tfoot => Some((|t| matches!(t, Thead | Tbody | Tfoot), |t| t == Table)),
        _ => None,
    }
}

/// A stray end tag must not close an element far outside.
fn barrier_for_end(tag: Tag) -> TagTest {
    use Tag::*;
    match tag {
        Table => |_| false,
        Tr | Td | Th | Thead | Tbody | Tfoot | Caption => |open| open == Table,
        Other => |open| open.is_cell() || open == Table,
        _ if tag.is_block() => |open| open.is_cell() || open == Table,
        _ => Tag::is_block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn build(html: &str) -> Page<'_> {
        super::build(html, usize::MAX, &Watch::new(&Limits::NONE)).unwrap()
    }

    #[test]
    fn text_beyond_the_bound_is_left_out() {
        let page =
            |bytes| super::build("<p>abc<p>d\u{e9}f", bytes, &Watch::new(&Limits::NONE)).unwrap();
        let texts = |page: &Page<'_>| -> String {
            let text = |node: &Node<'_>| match node.kind {
                NodeKind::Text(text) => text.to_owned(),
                NodeKind::Element(_) => "|".to_owned(),
            };
            page.nodes.iter().map(text).collect()
        };
        for (bytes, kept, is_cut) in [
            (0, "|", true),
            (2, "|ab", true),
            (5, "|abc|d", true), // Not half a character.
            (6, "|abc|d\u{e9}", true),
            (7, "|abc|d\u{e9}f", false),
        ] {
            let page = page(bytes);
            assert_eq!((texts(&page).as_str(), page.is_cut), (kept, is_cut), "{bytes}");
            assert!(page.nodes.iter().all(|node| node.end <= page.nodes.len()), "{bytes}");
        }
    }

    /// The tree in a short form: `p(a b(c))`.
    fn check(html: &str, want: &str) {
        let nodes = build(html).nodes;
        let mut got = String::new();
        let mut ends = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            while ends.last().is_some_and(|end| *end <= index) {
                ends.pop();
                got.push(')');
            }
            match &node.kind {
                NodeKind::Text(text) => got.push_str(text),
                NodeKind::Element(element) => {
                    got.push_str(&format!("{:?}(", element.tag));
                    ends.push(node.end);
                }
            }
        }
        got.extend(ends.iter().map(|_| ')'));
        assert_eq!(got, want, "{html}");
    }

    #[test]
    fn end_tags_that_are_left_out() {
        check("<p>a<p>b<div>c</div>", "P(a)P(b)Div(c)");
        check("<ul><li>a<ul><li>b</ul><li>c</ul>", "Ul(Li(aUl(Li(b)))Li(c))");
        check("<table><tr><td>a<td>b<tr><th>c</table>d", "Table(Tr(Td(a)Td(b))Tr(Th(c)))d");
        check("<dl><dt>a<dd>b<dt>c</dl>", "Dl(Dt(a)Dd(b)Dt(c))");
        check("<head><title>t</title><div>x", "Head(Title(t))Div(x)");
        check("<a>x<a>y</a>", "A(x)A(y)");
    }

    #[test]
    fn end_tags_that_match_nothing() {
        check("a</div></p>b</body>c", "abc");
        check("<div><b>a</div>b</b>c", "Div(B(a))bc");
        check("<b><div>a</b>b</div>", "B(Div(ab))");
        check("<div><table><td>a</div>b</table>", "Div(Table(Td(ab)))");
        check("<h1>a</h2>b", "H1(a)b");
        check("<x-a>1<x-b>2</x-a>3", "Other(1Other(2))3");
    }

    #[test]
    fn depth_is_capped() {
        let html = format!("{}x{}<p>y", "<div>".repeat(1000), "</div>".repeat(1000));
        let nodes = build(&html).nodes;
        assert_eq!(nodes.len(), 1003);
        assert_eq!(nodes[0].end, 1001);
        assert_eq!(nodes[MAX_DEPTH].end, MAX_DEPTH + 1);
    }
}

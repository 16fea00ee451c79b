//! Writes blocks in sequence, within quotes and list items.

use std::borrow::Cow;

/// Deeper quotes and items are not indented further: the indentation of each level is repeated on every line.
const MAX_NESTING: usize = 8;

/// The blocks written so far, and where the next one goes.
pub(super) struct Blocks {
    out: String,
    /// How many more bytes the prefixes of lines may take. Without a limit, a page of short lines in deep quotes would
    /// grow many times over.
    prefix_bytes_left: usize,
    containers: Vec<Container>,
    lists: Vec<List>,
}

struct Container {
    node: usize,
    kind: ContainerKind,
    /// Whether it has a line in the output.
    is_written: bool,
}

enum ContainerKind {
    Quote,
    /// The first line of the item begins with the marker, the others with as many spaces.
    Item {
        marker: String,
        is_first: bool,
    },
}

struct List {
    node: usize,
    /// `None` for bullets.
    next_number: Option<u32>,
    is_empty: bool,
}

impl Blocks {
    pub(super) fn new(max_prefix_bytes: usize) -> Self {
        Blocks {
            out: String::new(),
            prefix_bytes_left: max_prefix_bytes,
            containers: Vec::new(),
            lists: Vec::new(),
        }
    }

    pub(super) fn open_quote(&mut self, node: usize) {
        self.open(node, ContainerKind::Quote);
    }

    pub(super) fn open_list(&mut self, node: usize, next_number: Option<u32>) {
        self.lists.push(List { node, next_number, is_empty: true });
    }

    pub(super) fn open_item(&mut self, node: usize) {
        let mut marker = "- ".to_owned();
        let mut is_first = true;
        if let Some(list) = self.lists.last_mut() {
            is_first = std::mem::replace(&mut list.is_empty, false);
            if let Some(number) = &mut list.next_number {
                marker = format!("{number}. ");
                *number = number.saturating_add(1);
            }
        }
        self.open(node, ContainerKind::Item { marker, is_first });
    }

    fn open(&mut self, node: usize, kind: ContainerKind) {
        if self.containers.len() < MAX_NESTING {
            self.containers.push(Container { node, kind, is_written: false });
        }
    }

    /// Ends the container or the list that the element opened, if any.
    pub(super) fn close(&mut self, node: usize) {
        self.containers.pop_if(|container| container.node == node);
        self.lists.pop_if(|list| list.node == node);
    }

    /// Writes one block, which may have several lines.
    pub(super) fn write(&mut self, block: &str) {
        if block.is_empty() {
            return;
        }
        if !self.out.is_empty() {
            self.out.push('\n');
            if !self.continues_list() {
                let prefix = self.prefix_between();
                self.out.push_str(prefix.trim_end());
                self.out.push('\n');
            }
        }
        for (number, line) in block.split('\n').enumerate() {
            if number > 0 {
                self.out.push('\n');
            }
            let prefix = self.prefix_of_line();
            self.out.push_str(if line.is_empty() { prefix.trim_end() } else { &prefix });
            self.out.push_str(line);
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Whether the next block is a new item, which follows its list without a blank line.
    fn continues_list(&self) -> bool {
        let mut is_nested = false;
        for container in &self.containers {
            if let ContainerKind::Item { is_first, .. } = container.kind {
                if !container.is_written {
                    return is_nested || !is_first;
                }
                is_nested = true;
            }
        }
        false
    }

    /// The prefix of a blank line: only what the blocks around it share.
    fn prefix_between(&mut self) -> String {
        let shared = self.containers.iter().take_while(|container| container.is_written);
        let prefix = shared.map(Container::prefix).collect();
        self.affordable(prefix)
    }

    /// The prefix of a line of content. It uses up the markers of new items.
    fn prefix_of_line(&mut self) -> String {
        let prefix = self.containers.iter().map(Container::prefix).collect();
        self.containers.iter_mut().for_each(|container| container.is_written = true);
        self.affordable(prefix)
    }

    fn affordable(&mut self, prefix: String) -> String {
        match self.prefix_bytes_left.checked_sub(prefix.len()) {
            Some(left) => {
                self.prefix_bytes_left = left;
                prefix
            }
            None => String::new(),
        }
    }
}

impl Container {
    fn prefix(&self) -> Cow<'_, str> {
        match &self.kind {
            ContainerKind::Quote => Cow::Borrowed("> "),
            ContainerKind::Item { marker, .. } if self.is_written => {
                Cow::Owned(" ".repeat(marker.len()))
            }
            ContainerKind::Item { marker, .. } => Cow::Borrowed(marker),
        }
    }
}

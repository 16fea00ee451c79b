//! The current line of text, and the spans (emphasis, links) that are open in it.

/// Text between a pair of marks.
#[derive(PartialEq, Eq)]
pub(super) enum Span {
    Strong,
    Emphasis,
    Struck,
    /// With its escaped destination.
    Link(String),
}

impl Span {
    fn opening(&self) -> &'static str {
        match self {
            Span::Strong => "**",
            Span::Emphasis => "*",
            Span::Struck => "~~",
            Span::Link(_) => "[",
        }
    }

    fn push_closing(&self, out: &mut String) {
        match self {
            Span::Link(destination) => {
                out.push_str("](");
                out.push_str(destination);
                out.push(')');
            }
            _ => out.push_str(self.opening()),
        }
    }

    fn is_same_kind(&self, other: &Span) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Marks must touch the words that they enclose. So the opening mark of a span is written with its first word, and a
/// space before its end is written after the closing mark; a span without words is not written at all.
#[derive(Default)]
pub(super) struct Line {
    text: String,
    is_space_due: bool,
    /// The open spans, and the nodes that opened them.
    spans: Vec<(usize, Span)>,
    /// How many of them, from the outermost, have their opening mark written.
    opened: usize,
}

impl Line {
    pub(super) fn space(&mut self) {
        self.is_space_due = true;
    }

    pub(super) fn line_break(&mut self) {
        if !self.text.is_empty() {
            self.text.push_str("  \n");
        }
        self.is_space_due = false;
    }

    pub(super) fn ends_with_break(&self) -> bool {
        self.text.ends_with('\n')
    }

    /// Appends text that is already Markdown.
    pub(super) fn raw(&mut self, markdown: &str) {
        if markdown.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_space_due)
            && !self.text.is_empty()
            && !self.ends_with_break()
        {
            self.text.push(' ');
        }
        for (_, span) in self.spans.iter().skip(self.opened) {
            // `!` before a link would make it an image.
            if matches!(span, Span::Link(_)) && self.text.ends_with('!') {
                self.text.pop();
                self.text.push_str("\\!");
            }
            self.text.push_str(span.opening());
        }
        self.opened = self.spans.len();
        self.text.push_str(markdown);
    }

    /// Opens a span, unless one of its kind is open: nested emphasis has no effect.
    pub(super) fn open(&mut self, node: usize, span: Span) {
        if !self.spans.iter().any(|(_, open)| open.is_same_kind(&span)) {
            self.spans.push((node, span));
        }
    }

    /// Ends the innermost span if the element opened it.
    pub(super) fn close(&mut self, node: usize) {
        if let Some((_, span)) = self.spans.pop_if(|(opener, _)| *opener == node)
            && self.opened > self.spans.len()
        {
            self.opened = self.spans.len();
            span.push_closing(&mut self.text);
        }
    }

    /// Takes the line. Open spans are closed in it and opened again in the next one.
    pub(super) fn finish(&mut self) -> String {
        for (_, span) in self.spans.iter().take(self.opened).rev() {
            span.push_closing(&mut self.text);
        }
        self.opened = 0;
        self.is_space_due = false;
        let mut text = std::mem::take(&mut self.text);
        text.truncate(text.trim_end().len());
        text
    }
}

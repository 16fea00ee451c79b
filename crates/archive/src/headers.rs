//! Header lines, as WARC and HTTP have them.

/// The longest head (first line and headers) that is read.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Headers in the order in which they stand. Names are compared without regard to case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value of a header.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every value of a header.
    pub fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h str> {
        self.iter()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A line of the head. One that begins with a space continues the line before; one without a
    /// colon says nothing, and archives have them.
    fn push_line(&mut self, line: &str) {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = self.0.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            self.0.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
}

/// The first line and the headers of a head, and where what follows it begins.
pub(crate) struct Head {
    pub(crate) first_line: String,
    pub(crate) headers: Headers,
    pub(crate) end: usize,
}

/// Why a head cannot be read.
pub(crate) enum HeadFault {
    /// The input ends before the head does.
    Unended,
    /// The head goes on beyond [`MAX_HEAD_BYTES`].
    TooLong,
}

/// Reads a head up to its blank line. Each line ends in CRLF or LF, whatever the others do.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Head, HeadFault> {
    let mut head = Head { first_line: String::new(), headers: Headers::default(), end: 0 };
    let window = bytes.get(..MAX_HEAD_BYTES).unwrap_or(bytes);
    for (number, line) in window.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Some(content) = line.strip_suffix(b"\n") else { break };
        head.end += line.len();
        let content = String::from_utf8_lossy(content.strip_suffix(b"\r").unwrap_or(content));
        match (number, content.is_empty()) {
            (0, _) => head.first_line = content.into_owned(),
            (_, true) => return Ok(head),
            (_, false) => head.headers.push_line(&content),
        }
    }
    let is_whole_input = window.len() == bytes.len();
    Err(if is_whole_input { HeadFault::Unended } else { HeadFault::TooLong })
}

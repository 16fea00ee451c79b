//! Output formats.

use std::path::Path;

/// The output format of `fetch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// The page's text as Markdown.
    Markdown,
    Text,
    /// The page's source, as UTF-8.
    Html,
    /// One JSON object per line.
    Json,
    /// The requests and responses.
    Warc,
}

impl OutputFormat {
    pub const ALL: [OutputFormat; 5] = [
        OutputFormat::Markdown,
        OutputFormat::Text,
        OutputFormat::Html,
        OutputFormat::Json,
        OutputFormat::Warc,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            OutputFormat::Markdown => "markdown",
            OutputFormat::Text => "text",
            OutputFormat::Html => "html",
            OutputFormat::Json => "json",
            OutputFormat::Warc => "warc",
        }
    }

    /// One line of help.
    pub const fn help(self) -> &'static str {
        match self {
            OutputFormat::Markdown => "The page's text as Markdown",
            OutputFormat::Text => "The page's text",
            OutputFormat::Html => "The page's source, as UTF-8",
            OutputFormat::Json => "One JSON object per line",
            OutputFormat::Warc => {
                "A WARC archive of the requests and responses; needs --output FILE.warc.gz"
            }
        }
    }

    pub fn named(name: &str) -> Option<OutputFormat> {
        OutputFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format that a file name implies.
    pub fn of_file(path: &Path) -> Option<OutputFormat> {
        const ENDINGS: [(&[u8], OutputFormat); 8] = [
            (b".md", OutputFormat::Markdown),
            (b".markdown", OutputFormat::Markdown),
            (b".txt", OutputFormat::Text),
            (b".html", OutputFormat::Html),
            (b".htm", OutputFormat::Html),
            (b".json", OutputFormat::Json),
            (b".jsonl", OutputFormat::Json),
            (b".warc.gz", OutputFormat::Warc),
        ];
        let name = path.as_os_str().as_encoded_bytes().to_ascii_lowercase();
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format)
    }
}

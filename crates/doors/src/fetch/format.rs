//! Output formats.

use std::path::Path;

/// The output format of `fetch`, `extract` and `commoncrawl get`.
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

    /// The endings of file names that imply this format. The help texts list the first one.
    pub const fn endings(self) -> &'static [&'static str] {
        match self {
            OutputFormat::Markdown => &[".md", ".markdown"],
            OutputFormat::Text => &[".txt"],
            OutputFormat::Html => &[".html", ".htm"],
            OutputFormat::Json => &[".jsonl", ".json"],
            OutputFormat::Warc => &[".warc.gz"],
        }
    }

    /// Whether the output has a row for every URL. It says which URLs are done, so that a run can be resumed, and why
    /// one of them failed.
    pub const fn has_rows(self) -> bool {
        matches!(self, OutputFormat::Json | OutputFormat::Warc)
    }

    /// Whether `fetch` writes the format to files only.
    pub const fn needs_file(self) -> bool {
        matches!(self, OutputFormat::Warc)
    }

    /// The format that a file name implies.
    pub fn of_file(path: &Path) -> Option<OutputFormat> {
        let name = path.as_os_str().as_encoded_bytes().to_ascii_lowercase();
        let is_ending = |ending: &&str| name.ends_with(ending.as_bytes());
        OutputFormat::ALL.into_iter().find(|format| format.endings().iter().any(is_ending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_implies_the_format_of_its_ending() {
        for format in OutputFormat::ALL {
            for ending in format.endings() {
                let name = format!("Pages{}", ending.to_uppercase());
                assert_eq!(OutputFormat::of_file(Path::new(&name)), Some(format), "{name}");
            }
        }
        assert_eq!(OutputFormat::of_file(Path::new("pages.gz")), None);
    }
}

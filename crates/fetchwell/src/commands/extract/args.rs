//! The arguments of `fetchwell extract`.

use std::path::PathBuf;

use clap::Args;
use fetchwell_doors::fetch::OutputFormat;
use url::Url;

use crate::commands::args::{output_format, whole};

/// The formats that `extract` writes.
pub(super) const FORMATS: [OutputFormat; 3] =
    [OutputFormat::Markdown, OutputFormat::Text, OutputFormat::Json];

/// `fetchwell extract`.
#[derive(Debug, Args)]
pub(crate) struct ExtractArgs {
    /// HTML, WARC and ARC files, compressed or not; folders, which are searched for them; - reads
    /// standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Output format [default: by the extension of --output (.md, .txt, .jsonl), else markdown for an
    /// HTML page and json for several PATHs, a folder or an archive]
    #[arg(long, value_parser = output_format(&FORMATS))]
    pub(crate) format: Option<OutputFormat>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// URL of the page, for a single HTML page: relative links are resolved against it [default: the
    /// URL that the page declares, else that of the file]
    #[arg(long, value_name = "URL", value_parser = page_url)]
    pub(crate) url: Option<Url>,
    /// Add the URLs that each page links to; needs json
    #[arg(long)]
    pub(crate) links: bool,
    /// Number of pages to extract at the same time [default: number of CPU cores]
    #[arg(long, value_name = "N", value_parser = whole(1, 1024))]
    pub(crate) jobs: Option<usize>,
}

fn page_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let is_web = matches!(url.scheme(), "http" | "https");
    if is_web { Ok(url) } else { Err("it must begin with http:// or https://".to_owned()) }
}

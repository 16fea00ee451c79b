//! `fetchwell extract`: the articles of pages that you already have, in HTML files and archives. It needs no network.
//!
//! `inputs` finds the files. One thread reads them (`read`), several extract the pages (`page`), `in_order` puts the
//! results into the order of the files, and `progress` counts them.

pub(crate) mod args;
mod in_order;
mod inputs;
mod page;
mod progress;
mod read;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use anyhow::Context;
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_policy::units::format_size;
use fetchwell_settings::Settings;
use tracing::{error, warn};

use crate::commands::args::{links_need_json, requested_format};
use crate::console::exit::Exit;
use crate::console::output::cannot_use;
use crate::wiring::read_limits;
use args::{ExtractArgs, FORMATS};
use in_order::in_order;
use inputs::InputFiles;
use page::{ExtractOutcome, ExtractRules};
use progress::ExtractProgress;
use read::{ExtractItem, OpenFile};

pub(crate) fn run(
    settings: &Settings,
    args: &ExtractArgs,
    json: bool,
    quiet: u8,
) -> Result<Exit, Exit> {
    let requested = requested_format(args.format, json, args.output.as_deref())?;
    if let Some(format) = requested.filter(|format| !FORMATS.contains(format)) {
        let [first, second, third] = FORMATS.map(OutputFormat::name);
        let text = format!(
            "extract cannot write {}; choose --format {first}, {second} or {third}",
            format.name()
        );
        return Err(Exit::Usage(text));
    }
    let inputs = InputFiles::find(&args.paths)?;
    let progress = ExtractProgress::new(inputs.bytes, quiet > 0);
    // Only the content of a single file says whether it is a page or an archive.
    let single = inputs.single().map(|input| OpenFile::open(input, progress.bar()));
    let is_archive =
        |file: &Result<OpenFile, String>| file.as_ref().is_ok_and(OpenFile::is_archive);
    let is_page = single.as_ref().is_some_and(|file| !is_archive(file));
    if args.url.is_some() && !is_page {
        return Err(Exit::Usage("--url needs a single HTML page as its PATH".to_owned()));
    }
    let default = if is_page { OutputFormat::Markdown } else { OutputFormat::Json };
    let rules = ExtractRules {
        reading: read_limits(&settings.values),
        max_bytes: usize::try_from(settings.values.http_max_body).unwrap_or(usize::MAX),
        format: requested.unwrap_or(default),
        several: !is_page,
        url: args.url.clone(),
        links: args.links,
    };
    if rules.links && rules.format != OutputFormat::Json {
        return Err(links_need_json());
    }
    // An output file is not emptied for a single input that cannot be read.
    let unreadable = matches!(single, Some(Err(_)));
    let path = args.output.as_deref().filter(|_| !unreadable);
    let output = ExtractOutput::open(path, &inputs)?;
    if !is_page && !output.is_terminal {
        progress.show();
    }
    let bar = progress.bar().clone();
    let others = if single.is_some() { Vec::new() } else { inputs.list };
    let others = others.into_iter().map(move |input| OpenFile::open(&input, &bar));
    extract_all(single.into_iter().chain(others), rules, jobs(args), output, progress)
}

fn jobs(args: &ExtractArgs) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    args.jobs.unwrap_or_else(cores)
}

/// Extracts the pages of all files. A file or a page that fails does not stop the others.
fn extract_all(
    files: impl Iterator<Item = Result<OpenFile, String>> + Send + 'static,
    rules: ExtractRules,
    jobs: usize,
    mut output: ExtractOutput,
    mut progress: ExtractProgress,
) -> Result<Exit, Exit> {
    let max_bytes = rules.max_bytes;
    let produce = move |emit: read::Emit<'_>| {
        for file in files {
            let flow = match file {
                Ok(file) => file.emit_items(max_bytes, emit),
                Err(message) => emit(ExtractItem::Failed(message)),
            };
            if flow.is_break() {
                break;
            }
        }
    };
    let mut results = in_order(jobs, produce, move |item| rules.outcome(item))?;
    let mut is_closed = false;
    while let Some(outcome) = results.next()? {
        progress.count(&outcome);
        match outcome {
            ExtractOutcome::Page { bytes, cut } => {
                if !output.write(&bytes)? {
                    // The reader closed the pipe, as `head` does, which is no error.
                    is_closed = true;
                    break;
                }
                if let Some(name) = cut {
                    let text = "has more text than extract.max_text: the rest is left out";
                    progress.bar().suspend(|| warn!("{name} {text}"));
                }
            }
            ExtractOutcome::Skipped => {}
            ExtractOutcome::Failed(message) => progress.bar().suspend(|| error!("{message}")),
        }
    }
    if !is_closed {
        progress.end();
    }
    Ok(if progress.has_failures() { Exit::SomeFailed } else { Exit::Ok })
}

/// Where the pages are written.
struct ExtractOutput {
    name: String,
    write: Box<dyn Write>,
    is_terminal: bool,
}

impl ExtractOutput {
    /// Opens the file, or standard output. A file that is also read is refused: it would be empty before it is read.
    fn open(path: Option<&Path>, inputs: &InputFiles) -> Result<ExtractOutput, Exit> {
        let Some(path) = path else {
            let stdout = io::stdout();
            let is_terminal = stdout.is_terminal();
            let name = "standard output".to_owned();
            return Ok(ExtractOutput { name, write: Box::new(stdout), is_terminal });
        };
        if let Ok(existing) = fs::metadata(path)
            && inputs.files().any(|file| is_same(file, &existing))
        {
            let error = io::Error::other("it is one of the files to read");
            return Err(cannot_use(path, &error));
        }
        let file = File::create(path).map_err(|error| cannot_use(path, &error))?;
        let name = path.display().to_string();
        Ok(ExtractOutput { name, write: Box::new(file), is_terminal: false })
    }

    /// Returns false if the reader has closed the pipe.
    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<bool> {
        match self.write.write_all(bytes).and_then(|()| self.write.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => {
                written.map(|()| true).with_context(|| format!("could not write to {}", self.name))
            }
        }
    }
}

fn is_same(file: &Path, other: &fs::Metadata) -> bool {
    fs::metadata(file).is_ok_and(|file| (file.dev(), file.ino()) == (other.dev(), other.ino()))
}

/// The message about something that could not be extracted.
fn failed(what: &(impl Display + ?Sized), why: impl Display, fix: &str) -> String {
    format!("could not extract {what}: {why}; {fix}")
}

fn too_large(what: &str, max_bytes: usize) -> String {
    let limit = format_size(max_bytes as u64);
    let why = format!("the page is larger than {limit}");
    failed(what, why, "raise http.max_body in the settings to read it")
}

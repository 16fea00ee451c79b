//! The files to read, in order.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::failed;
use crate::console::exit::Exit;

/// The argument that means standard input.
pub(super) const STDIN: &str = "-";

const HTML_ENDINGS: [&str; 6] = [".html", ".htm", ".xhtml", ".html.gz", ".htm.gz", ".xhtml.gz"];
const ARCHIVE_ENDINGS: [&str; 4] = [".warc", ".warc.gz", ".arc", ".arc.gz"];

/// Something to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputFile {
    Stdin,
    File(PathBuf),
    /// A path that could not be read, and the message about it.
    Unreadable(String),
}

/// All inputs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputFiles {
    pub(super) list: Vec<InputFile>,
    /// The total size of the files, for the progress bar; unknown with standard input.
    pub(super) bytes: Option<u64>,
    /// Whether all of it is one file or standard input.
    is_single: bool,
}

impl InputFiles {
    /// Finds the files of these paths. Those of a folder are sorted by name; symbolic links to folders in it are not
    /// followed, because they can form a loop.
    pub(super) fn find(paths: &[PathBuf]) -> Result<InputFiles, Exit> {
        let is_single = paths.len() == 1;
        let mut inputs = InputFiles { list: Vec::new(), bytes: Some(0), is_single };
        for path in paths {
            if path.as_os_str() == STDIN {
                if inputs.list.contains(&InputFile::Stdin) {
                    let text = "standard input can be read only once; give a single -";
                    return Err(Exit::Usage(text.to_owned()));
                }
                inputs.list.push(InputFile::Stdin);
                inputs.bytes = None;
                continue;
            }
            match fs::metadata(path) {
                Ok(found) if found.is_dir() => {
                    inputs.is_single = false;
                    inputs.add_folder(path);
                }
                Ok(found) => inputs.add_file(path.clone(), found.len()),
                Err(error) => inputs.list.push(unreadable(path, &error)),
            }
        }
        if inputs.list.is_empty() {
            let folders: Vec<String> =
                paths.iter().map(|path| path.display().to_string()).collect();
            let text = format!(
                "no HTML, WARC or ARC files found in {}; to read a file with another extension, \
                 give its path",
                folders.join(", ")
            );
            return Err(Exit::Usage(text));
        }
        Ok(inputs)
    }

    /// The only input, unless it is a folder.
    pub(super) fn single(&self) -> Option<&InputFile> {
        self.list.first().filter(|_| self.is_single)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.list.iter().filter_map(|input| match input {
            InputFile::File(path) => Some(path.as_path()),
            InputFile::Stdin | InputFile::Unreadable(_) => None,
        })
    }

    fn add_file(&mut self, path: PathBuf, bytes: u64) {
        self.bytes = self.bytes.map(|total| total.saturating_add(bytes));
        self.list.push(InputFile::File(path));
    }

    fn add_folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.list.push(unreadable(folder, &error)),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add_folder(&path);
            } else if is_html_name(&path) || is_archive_name(&path) {
                // Follows a symbolic link.
                match fs::metadata(&path) {
                    Ok(found) if found.is_file() => self.add_file(path, found.len()),
                    Ok(_) => {}
                    Err(error) => self.list.push(unreadable(&path, &error)),
                }
            }
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> InputFile {
    let text = path.to_string_lossy();
    let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    let fix = if is_url {
        "to get the article of a page on the web, use fetchwell fetch"
    } else {
        "check that it exists and that you may read it"
    };
    InputFile::Unreadable(failed(&text, error, fix))
}

fn is_html_name(path: &Path) -> bool {
    has_ending(path, &HTML_ENDINGS)
}

pub(super) fn is_archive_name(path: &Path) -> bool {
    has_ending(path, &ARCHIVE_ENDINGS)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.as_os_str().as_encoded_bytes().to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending.as_bytes()))
}

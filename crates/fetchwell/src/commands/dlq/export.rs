//! Exports all dead letters as JSON lines.

use std::io::{self, Write};
use std::path::Path;

use fetchwell_engine::ports::dead_letters::{DeadLetters, LETTERS_PER_PAGE};
use fetchwell_service::views::letters::letter_line;
use tempfile::NamedTempFile;

use crate::console::exit::Exit;
use crate::console::output::{folder_of, print};

pub(super) async fn to_standard_output(letters: &dyn DeadLetters) -> Result<Exit, Exit> {
    export(letters, |lines| print(lines).map(drop)).await?;
    Ok(Exit::Ok)
}

/// Writes to a temporary file first, so that the file is either complete or unchanged.
pub(super) async fn to_file(letters: &dyn DeadLetters, path: &Path) -> Result<Exit, Exit> {
    let fault = |error: io::Error| {
        Exit::Usage(format!(
            "could not write {}: {error}; use another file, or none for standard output",
            path.display()
        ))
    };
    let mut file = NamedTempFile::new_in(folder_of(path)).map_err(fault)?;
    let exported = export(letters, |lines| file.write_all(lines).map_err(fault)).await?;
    file.as_file().sync_all().map_err(fault)?;
    file.persist(path).map_err(|error| fault(error.error))?;
    tracing::info!("exported {exported} to {}", path.display());
    Ok(Exit::Ok)
}

/// Writes all letters, page by page, and returns how many there are.
async fn export(
    letters: &dyn DeadLetters,
    mut write: impl FnMut(&[u8]) -> Result<(), Exit>,
) -> Result<usize, Exit> {
    let mut exported = 0;
    let mut from = None;
    loop {
        let page = letters.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
        let lines: String = page.letters.iter().map(letter_line).collect();
        write(lines.as_bytes())?;
        exported += page.letters.len();
        from = page.next;
        if from.is_none() {
            return Ok(exported);
        }
    }
}

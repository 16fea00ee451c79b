//! Manual pages, generated from the definition of the command line.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::Cli;

/// The manual page of the program itself.
pub(super) fn main_page() -> io::Result<Vec<u8>> {
    page(&whole_command(), None)
}

/// Writes one page per command into a folder, and returns how many.
pub(super) fn write_pages(folder: &Path) -> io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    write_page(&whole_command(), None, folder)
}

/// The command line. There is no page for `help`.
fn whole_command() -> Command {
    let mut command = Cli::command().long_version(None::<&str>).disable_help_subcommand(true);
    command.build();
    command
}

fn write_page(command: &Command, parent: Option<&str>, folder: &Path) -> io::Result<usize> {
    let name = name_of(command);
    std::fs::write(folder.join(format!("{name}.1")), page(command, parent)?)?;
    let mut written = 1;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        written += write_page(subcommand, Some(name), folder)?;
    }
    Ok(written)
}

/// The name of a command's page, such as `fetchwell-pages-add`.
fn name_of(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command, parent: Option<&str>) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(with_short_usage(command))
        // roff needs an empty date in quotes: clap_mangen would leave it out, and the source would take its place.
        .date("\"\"")
        .source(concat!("fetchwell ", env!("CARGO_PKG_VERSION")))
        .manual("Fetchwell manual")
        .render(&mut page)?;
    // clap_mangen writes this for an empty line, and mandoc warns about it.
    let mut page = String::from_utf8_lossy(&page).replace("\n.br\n\n.br\n", "\n.sp\n");
    if let Some(parent) = parent {
        let mut see_also = Roff::default();
        see_also.control("SH", ["SEE ALSO"]);
        see_also.text([bold(parent), roman("(1)")]);
        page.push_str(&see_also.to_roff());
    }
    Ok(page.into_bytes())
}

/// Uses the synopsis of `--help`: the one of clap_mangen lists every global option, without values.
fn with_short_usage(command: &Command) -> Command {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    command.override_usage(usage.trim_start_matches("Usage: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_leads_back() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_pages(folder.path()).unwrap();
        assert_eq!(written, std::fs::read_dir(folder.path()).unwrap().count());
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("fetchwell.1").into_bytes(), main_page().unwrap());
        let page = read("fetchwell-commoncrawl-batch.1");
        for part in [
            ".TH fetchwell-commoncrawl-batch 1 \"\" \"fetchwell ",
            "\\fBfetchwell commoncrawl batch\\fR [OPTIONS]",
            ".SH \"GLOBAL OPTIONS\"",
            ".SH \"SEE ALSO\"\n\\fBfetchwell\\-commoncrawl\\fR(1)",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let main = read("fetchwell.1");
        for line in main.lines().filter(|line| line.ends_with("(1)")) {
            let page = line.trim_end_matches("(1)").replace("\\-", "-");
            assert!(folder.path().join(format!("{page}.1")).exists(), "there is no {page}");
        }
    }
}

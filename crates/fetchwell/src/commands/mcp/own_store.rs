//! The store of `fetchwell mcp`: a file in the user's data folder, because clients start the command in any folder.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use fetchwell_settings::{Flag, Settings};

use crate::console::exit::Exit;

const FILE: &str = "mcp.db";

/// Only the user may read what was fetched.
const FOLDER_MODE: u32 = 0o700;

/// The setting that names the file; `None` if a flag, the environment or a file names a store.
pub(crate) fn own_store(
    settings: &Settings,
    environment: &BTreeMap<String, String>,
) -> Result<Option<Flag<'static>>, Exit> {
    if !settings.is_default("store") {
        return Ok(None);
    }
    let folder = data_folder(environment).ok_or_else(|| {
        Exit::Usage(
            "no folder for the store: neither XDG_DATA_HOME nor HOME is an absolute path; set the store with \
             --store sqlite:PATH"
                .to_owned(),
        )
    })?;
    let folder = folder.join("fetchwell");
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder).map_err(|error| {
        let shown = folder.display();
        Exit::Usage(format!(
            "could not create {shown}: {error}; set the store with --store sqlite:PATH"
        ))
    })?;
    let value = format!("sqlite:{}", folder.join(FILE).display());
    Ok(Some(Flag { key: "store", name: "the data folder", value }))
}

/// `$XDG_DATA_HOME`, else `~/.local/share`. Relative paths are ignored, as the XDG specification requires.
fn data_folder(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let absolute =
        |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_is_that_of_the_user() {
        let of = |given: &[(&str, &str)]| {
            let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            data_folder(&given.collect())
        };
        let home = ("HOME", "/home/anna");
        assert_eq!(of(&[("XDG_DATA_HOME", "/data"), home]), Some(PathBuf::from("/data")));
        let usual = Some(PathBuf::from("/home/anna/.local/share"));
        assert_eq!(of(&[home]), usual);
        assert_eq!(of(&[("XDG_DATA_HOME", "data"), home]), usual);
        assert_eq!(of(&[("XDG_DATA_HOME", ""), home]), usual);
        assert_eq!(of(&[("HOME", "")]), None);
    }
}

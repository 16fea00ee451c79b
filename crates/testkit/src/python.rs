//! Python, for tests that need a program of another project.

use std::path::PathBuf;

use crate::skip::skipped;

/// The Python that `FETCHWELL_TEST_PYTHON` names. `None` if it is not set; the skip is reported.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("FETCHWELL_TEST_PYTHON").filter(|path| !path.is_empty());
    if python.is_none() {
        skipped("FETCHWELL_TEST_PYTHON is not set; scripts/setup --test makes one");
    }
    python.map(PathBuf::from)
}

//! Python, for tests that need another's program.

use std::path::PathBuf;

use crate::skip::skipped;

/// The Python that `FETCHWELL_TEST_PYTHON` names; `None`, said aloud, where none is named.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("FETCHWELL_TEST_PYTHON").filter(|path| !path.is_empty());
    if python.is_none() {
        skipped("FETCHWELL_TEST_PYTHON is not set; scripts/setup --test makes one");
    }
    python.map(PathBuf::from)
}

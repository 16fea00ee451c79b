//! Where documents are written.

use std::path::{Path, PathBuf};

use fetchwell_engine::ports::error::StoreError;

/// An existing folder for documents.
#[derive(Clone)]
pub struct OutputTarget {
    /// Its canonical path.
    pub(in super::super) folder: PathBuf,
}

impl OutputTarget {
    /// The folder at this path, which is created if missing.
    pub fn create(path: &Path) -> Result<OutputTarget, StoreError> {
        let create = || {
            std::fs::create_dir_all(path)?;
            path.canonicalize()
        };
        let folder = create().map_err(|error| {
            StoreError::transient(format!("cannot use the folder {}", path.display()))
                .with_source(error)
                .with_advice("use another one with --output")
        })?;
        Ok(OutputTarget { folder })
    }
}

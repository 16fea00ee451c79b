//! Parquet in a build without it.

use std::fs::File;
use std::io;
use std::path::Path;

use fetchwell_settings::features::PARQUET;

/// The settings refuse the format, but a build that has it may have left a segment behind.
pub(super) fn write(_: &File, _: &Path) -> io::Result<()> {
    let wrong = PARQUET.missing();
    Err(io::Error::other(format!("it {}; {}", wrong.problem, wrong.mend)))
}

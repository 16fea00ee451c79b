//! Stands in for `columns` in a build without Parquet.

use std::fs::File;
use std::io;
use std::path::Path;

use thiserror::Error;

#[derive(Debug, Error)]
#[error(
    "it needs Parquet, and this fetchwell was built without it; build it with --features parquet, \
     or use the package, which has every feature"
)]
struct BuiltWithoutParquet;

/// The settings refuse this format, but a build with Parquet may have left a segment behind.
pub(super) fn write(_: &File, _: &Path) -> io::Result<()> {
    Err(io::Error::other(BuiltWithoutParquet))
}

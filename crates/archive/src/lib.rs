//! The formats of web archives: `cluster.idx`, CDXJ lines, gzip members, WARC and ARC records.
//!
//! Pure: it converts bytes to values and values to bytes. All input is untrusted, so every length is limited, every
//! name that could become a path is checked, and every error has a type.

pub mod arc;
mod body;
mod buffer;
pub mod cdxj;
pub mod cluster_idx;
mod digest;
mod format;
pub mod gzip;
pub mod headers;
mod http;
mod line;
pub mod message;
mod scanner;
mod shared_error;
mod stored;
pub mod warc;
pub mod warc_writer;

pub use body::{Body, BodyFlaw};
pub use format::ArchiveFormat;
pub use http::{HttpFault, HttpMessage};
pub use line::LineFault;
pub use shared_error::SharedError;

//! What web archives are made of: `cluster.idx`, CDXJ lines, gzip members, WARC records.
//!
//! Pure: bytes in, values out, and values in, bytes out. All that is read comes from outside, so
//! every length is bounded, every name that could become a path is checked, and what is wrong is a
//! typed fault.

mod body;
mod buffer;
pub mod cdxj;
pub mod cluster_idx;
mod digest;
pub mod gzip;
pub mod headers;
mod http;
mod line;
pub mod message;
mod shared_error;
mod stored;
pub mod warc;
pub mod warc_writer;

pub use body::{Body, BodyFlaw};
pub use http::{HttpFault, HttpMessage};
pub use line::LineFault;
pub use shared_error::SharedError;

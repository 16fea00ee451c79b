//! The only code that opens an outbound connection.
//!
//! A request connects to a vetted address, asks for leave at the last moment, writes its head, and reads
//! the answer within every limit. What goes wrong is an outcome, never a panic and never a hang.

mod breach;
mod client;
mod connect;
mod decode;
mod dns;
mod error;
mod fair;
mod interim;
mod lack;
pub mod operator_client;
mod own_listeners;
mod patience;
mod pool;
mod timely;
mod tls_fault;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::address::{AddressGuard, ResolveRule};
use fetchwell_policy::url::Site;

pub use client::Client;
pub use dns::{DnsSettings, NameAnswer, Resolve};
pub use error::ClientError;
pub use lack::is_lack_of_our_own;
pub use own_listeners::OwnListeners;

/// Every limit of a request.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Looking up the name, connecting and the TLS handshake together.
    pub connect_timeout: Duration,
    /// The whole request, and so the wait for the first byte of its answer.
    pub request_timeout: Duration,
    /// Between two pieces of a body.
    pub idle_read_timeout: Duration,
    /// What a body must come at on average, whenever so much time was spent waiting for it as may pass
    /// between two pieces. Slower is as good as silent.
    pub least_bytes_per_second: usize,
    /// A body, with its content encoding undone.
    pub max_body_bytes: usize,
    /// How much larger than on the wire a body may be, beyond its first MiB.
    pub max_ratio: usize,
    /// The compressed frames (zstd) or members (gzip) that a body may consist of: each costs time, however little is
    /// in it.
    pub max_frames: usize,
    /// The headers of an answer.
    pub max_header_bytes: usize,
    /// All that is held for pages, from their bodies to what is stored of them.
    pub body_budget_bytes: usize,
    /// Connections kept for later requests.
    pub max_idle_connections: usize,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            idle_read_timeout: Duration::from_secs(10),
            least_bytes_per_second: 100,
            max_body_bytes: 10 << 20,
            max_ratio: 100,
            max_frames: 1_000,
            max_header_bytes: 64 << 10,
            body_budget_bytes: 256 << 20,
            max_idle_connections: 512,
        }
    }
}

/// What a client needs to know.
pub struct HttpSettings {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The limits.
    pub limits: HttpLimits,
    /// Which addresses may be connected to.
    pub guard: AddressGuard,
    /// Names that are sent to fixed addresses.
    pub resolve: Vec<ResolveRule>,
    /// How names are looked up.
    pub dns: DnsSettings,
    /// Where this process listens: never connected to.
    pub own_listeners: OwnListeners,
    /// Sites that may be connected to at private addresses only: they go without pacing, and nobody
    /// said that they are ours.
    pub private_only: Arc<dyn Fn(&Site) -> bool + Send + Sync>,
    /// Certificates to trust besides the usual ones, as a PEM file.
    pub extra_ca_file: Option<PathBuf>,
}

//! The only code that opens an outbound connection.
//!
//! A request connects to a vetted address, gets permission at the last moment, writes its head, and reads the response
//! within all limits. Every failure is returned as an outcome; nothing panics or hangs.

mod breach;
mod client;
mod connect;
mod decode;
mod dns;
mod error;
mod interim;
mod lack;
pub mod operator_client;
mod own_listeners;
mod patience;
mod pool;
mod stream;
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

/// The limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// For the name lookup, connecting and the TLS handshake together.
    pub connect_timeout: Duration,
    /// For the whole request, including the wait for the first byte of the response.
    pub request_timeout: Duration,
    /// Between two chunks of a body.
    pub idle_read_timeout: Duration,
    /// The minimum average rate of a body, checked each time that `idle_read_timeout` has been spent waiting for it. A
    /// slower server counts as silent.
    pub least_bytes_per_second: usize,
    /// The maximum size of a decoded body.
    pub max_body_bytes: usize,
    /// The maximum ratio of decoded to encoded size, for bodies that decode to more than 1 MiB.
    pub max_ratio: usize,
    /// The maximum number of compressed frames (zstd) or members (gzip) in a body. Each costs time, even if it is tiny.
    pub max_frames: usize,
    /// The maximum size of the response headers.
    pub max_header_bytes: usize,
    /// The memory for all pages in progress, from their bodies to the records to be stored.
    pub body_budget_bytes: usize,
    /// The maximum number of idle connections that are kept for later requests.
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

/// The settings of a client.
pub struct HttpSettings {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The limits of each request.
    pub limits: HttpLimits,
    /// Which addresses may be connected to.
    pub guard: AddressGuard,
    /// Rules that map hosts to fixed addresses.
    pub resolve: Vec<ResolveRule>,
    /// Settings for name lookups.
    pub dns: DnsSettings,
    /// The addresses on which this process listens. It never connects to them.
    pub own_listeners: OwnListeners,
    /// Sites that may only have private addresses: they are fetched without pacing, and the operator has not declared
    /// to own them.
    pub private_only: Arc<dyn Fn(&Site) -> bool + Send + Sync>,
    /// A PEM file with additional root certificates to trust.
    pub extra_ca_file: Option<PathBuf>,
}

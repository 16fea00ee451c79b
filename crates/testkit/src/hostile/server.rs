//! Serves each behaviour on its own loopback port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::behaviour::{Behaviour, Over};
use super::certificates::{Authority, Identity};
use super::step::{HostileStep, follow};
use super::table::behaviours;

/// The response to robots.txt if it is not hostile: everything is allowed.
const FRIENDLY_ROBOTS: &[u8] =
    b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The response to requests for robots.txt. (Over HTTP/2, and on connections that fail before the request is read, it
/// is the same as for pages.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsAre {
    /// A 404, so that pages can be requested.
    Friendly,
    /// The same as for pages.
    Hostile,
}

/// A behaviour and its address.
#[derive(Clone, Debug)]
pub struct Target {
    /// The behaviour.
    pub behaviour: Arc<Behaviour>,
    /// Its host: each target is a separate site.
    pub host: String,
    /// The URL of its page.
    pub url: String,
    /// The address of that host.
    pub address: SocketAddr,
}

/// Serves every behaviour until it is dropped.
pub struct HostileServer {
    targets: Vec<Target>,
    authority: Authority,
    _listeners: Vec<AbortOnDropHandle<()>>,
}

impl HostileServer {
    /// Listens on free loopback ports. Call it within a tokio runtime.
    pub async fn start(robots: RobotsAre) -> anyhow::Result<HostileServer> {
        let authority = Authority::new()?;
        let mut targets = Vec::new();
        let mut listeners = Vec::new();
        for behaviour in behaviours().into_iter().map(Arc::new) {
            for (domain, tls) in channels(behaviour.over, &authority)? {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                let host = format!("{}.{domain}.test", behaviour.name);
                let scheme = if domain == "plain" { "http" } else { "https" };
                targets.push(Target {
                    url: format!("{scheme}://{host}/page"),
                    host,
                    address: listener.local_addr()?,
                    behaviour: behaviour.clone(),
                });
                let serving = serve(listener, behaviour.clone(), tls, robots);
                listeners.push(AbortOnDropHandle::new(tokio::spawn(serving)));
            }
        }
        Ok(HostileServer { targets, authority, _listeners: listeners })
    }

    /// All behaviours; those for TCP also over TLS.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The certificate of the CA to trust, as a PEM file.
    pub fn ca_file(&self) -> &Path {
        self.authority.file()
    }
}

type Channel = (&'static str, Option<TlsAcceptor>);

/// The domains of a behaviour, with the TLS acceptor for each.
fn channels(over: Over, authority: &Authority) -> anyhow::Result<Vec<Channel>> {
    let tls = |identity, protocol: &[u8]| authority.acceptor(identity, protocol).map(Some);
    Ok(match over {
        Over::Either => vec![("plain", None), ("tls", tls(Identity::Good, b"http/1.1")?)],
        Over::Tls(identity) => vec![("tls", tls(identity, b"http/1.1")?)],
        Over::Http2 => vec![("tls", tls(Identity::Good, b"h2")?)],
        Over::NoTls => vec![("tls", None)],
    })
}

/// Each connection continues until its client is gone, even after the server is dropped.
async fn serve(
    listener: TcpListener,
    behaviour: Arc<Behaviour>,
    tls: Option<TlsAcceptor>,
    robots: RobotsAre,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let behaviour = behaviour.clone();
        let tls = tls.clone();
        tokio::spawn(async move {
            // If the client disconnects, the script ends, which is what clients should do here.
            drop(behave(stream, &behaviour, tls, robots).await);
        });
    }
}

async fn behave(
    mut stream: TcpStream,
    behaviour: &Behaviour,
    tls: Option<TlsAcceptor>,
    robots: RobotsAre,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if behaviour.script.iter().any(|step| matches!(step, HostileStep::Reset)) {
        stream.set_zero_linger()?;
    }
    let robots = (robots == RobotsAre::Friendly).then_some(FRIENDLY_ROBOTS);
    match tls {
        None => follow(&behaviour.script, &mut stream, robots).await,
        Some(tls) => {
            let mut stream = tls.accept(stream).await?;
            follow(&behaviour.script, &mut stream, robots).await
        }
    }
}

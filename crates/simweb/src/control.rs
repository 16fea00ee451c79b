use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::script::SiteScript;
use crate::server::Server;

/// The site that only the control sends requests to.
pub const CONTROL_SITE: &str = "control.invalid";

/// The interval between the control's requests.
const EVERY: Duration = Duration::from_millis(5);

/// The minimum tolerance, even on a very fast machine.
const LEAST_TOLERANCE: Duration = Duration::from_millis(5);

/// A sender that keeps its schedule as precisely as this machine allows. The lateness of its requests is what the judge
/// must tolerate, in this run and under this load.
///
/// Dropping it stops it.
pub struct Control {
    sending: JoinHandle<io::Result<()>>,
    scheduled: Schedule,
}

type Schedule = Arc<Mutex<Vec<Instant>>>;

impl Control {
    /// The site that a world needs for the control.
    pub fn site() -> SiteScript {
        SiteScript::new(CONTROL_SITE).page_bytes(64)
    }

    /// Starts sending to this server, whose world must have the control's site.
    pub fn start(server: &Server) -> Control {
        let scheduled = Schedule::default();
        let sending = tokio::spawn(send(server.addr(), scheduled.clone()));
        Control { sending, scheduled }
    }

    /// By how much a gap may be too short through no fault of the sender: the 99.9th percentile of the lateness of the
    /// control's requests so far. `None` before its first request.
    pub fn tolerance(&self, server: &Server) -> Option<Duration> {
        let lateness = self.lateness(server);
        let p999 = lateness.get(lateness.len() * 999 / 1_000).or(lateness.last())?;
        Some(*p999.max(&LEAST_TOLERANCE))
    }

    /// The lateness of each request of the control, sorted.
    fn lateness(&self, server: &Server) -> Vec<Duration> {
        let hits = server.world().hits_of(CONTROL_SITE);
        let scheduled = self.scheduled.lock();
        let mut lateness: Vec<Duration> = scheduled
            .iter()
            .zip(&hits)
            .map(|(at, hit)| (server.started() + hit.at).saturating_duration_since(*at))
            .collect();
        lateness.sort_unstable();
        lateness
    }

    /// Stops it, and returns the error that stopped it before, if any.
    pub async fn end(mut self) -> io::Result<()> {
        self.sending.abort();
        // Only an abort or a panic ends the task without a result.
        (&mut self.sending).await.unwrap_or(Ok(()))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.sending.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "it must not use the client under test")]
async fn send(addr: SocketAddr, scheduled: Schedule) -> io::Result<()> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {CONTROL_SITE}\r\n\r\n");
    let mut answer = [0; 4_096];
    let mut tick = interval(EVERY);
    // After a delay the schedule restarts from there, so that one delay makes only one request late.
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let at = tick.tick().await.into_std();
        scheduled.lock().push(at);
        stream.write_all(request.as_bytes()).await?;
        // One read is enough: the response is far smaller than the buffer, and its content does not matter.
        if stream.read(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

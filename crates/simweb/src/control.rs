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

/// The site that only the control asks.
pub const CONTROL_SITE: &str = "control.invalid";

/// How often the control sends.
const EVERY: Duration = Duration::from_millis(5);

/// No machine is taken for better than this.
const LEAST_TOLERANCE: Duration = Duration::from_millis(5);

/// A sender that keeps its schedule as well as this machine lets anybody. How late its requests
/// arrive is what the judge has to forgive, in this run and under this load.
///
/// Dropping it ends it.
pub struct Control {
    sending: JoinHandle<io::Result<()>>,
    scheduled: Schedule,
}

type Schedule = Arc<Mutex<Vec<Instant>>>;

impl Control {
    /// The site that a world needs for it.
    pub fn site() -> SiteScript {
        SiteScript::new(CONTROL_SITE).page_bytes(64)
    }

    /// Starts sending to this server, whose world has the control's site.
    pub fn start(server: &Server) -> Control {
        let scheduled = Schedule::default();
        let sending = tokio::spawn(send(server.addr(), scheduled.clone()));
        Control { sending, scheduled }
    }

    /// How short a gap may be for no fault of the sender's: the lateness that one in a thousand of
    /// the control's own requests exceeded so far. None before its first request.
    pub fn tolerance(&self, server: &Server) -> Option<Duration> {
        let lateness = self.lateness(server);
        let p999 = lateness.get(lateness.len() * 999 / 1_000).or(lateness.last())?;
        Some(*p999.max(&LEAST_TOLERANCE))
    }

    /// How late each of the control's requests was, the least first.
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

    /// Ends it, and says why it had to stop before that, if it had to.
    pub async fn end(mut self) -> io::Result<()> {
        self.sending.abort();
        // Only an abort or a panic ends the task without its own word.
        (&mut self.sending).await.unwrap_or(Ok(()))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.sending.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "it must not go through what it controls")]
async fn send(addr: SocketAddr, scheduled: Schedule) -> io::Result<()> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {CONTROL_SITE}\r\n\r\n");
    let mut answer = [0; 4_096];
    let mut tick = interval(EVERY);
    // After a hold-up the schedule goes on from there: one hold-up is one late request, not many.
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let at = tick.tick().await.into_std();
        scheduled.lock().push(at);
        stream.write_all(request.as_bytes()).await?;
        // One read is enough: the answer is far smaller than the buffer, and none is judged.
        if stream.read(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::Origin;

/// The site that only the control asks.
pub(super) const CONTROL_SITE: &str = "control.invalid";

/// How often the control sends.
const EVERY: Duration = Duration::from_millis(5);

/// No machine is taken for better than this.
const LEAST_TOLERANCE: Duration = Duration::from_millis(5);

/// A sender that keeps its schedule as well as this machine lets anybody. How late its requests
/// arrive is what the judge has to forgive, in this run and under this load.
pub struct Control {
    sending: JoinHandle<io::Result<()>>,
    scheduled: Schedule,
}

type Schedule = Arc<Mutex<Vec<Instant>>>;

impl Control {
    /// Starts sending to the origin.
    pub fn start(origin: &Origin) -> Control {
        let scheduled = Schedule::default();
        let sending = tokio::spawn(send(origin.server().addr(), scheduled.clone()));
        Control { sending, scheduled }
    }

    /// Ends it, and says how short a gap may be for no fault of the sender's: the lateness that
    /// one in a thousand of the control's own requests exceeded.
    pub async fn tolerance(self, origin: &Origin) -> Duration {
        self.sending.abort();
        if let Ok(Err(error)) = self.sending.await {
            panic!("the control could not go on: {error}");
        }
        let started = origin.server().started();
        let hits = origin.server().world().hits_of(CONTROL_SITE);
        let scheduled = self.scheduled.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lateness: Vec<Duration> = scheduled
            .iter()
            .zip(&hits)
            .map(|(at, hit)| (started + hit.at).saturating_duration_since(*at))
            .collect();
        assert!(!lateness.is_empty(), "the control sent nothing");
        lateness.sort_unstable();
        let p999 = lateness[(lateness.len() * 999 / 1_000).min(lateness.len() - 1)];
        p999.max(LEAST_TOLERANCE)
    }
}

#[expect(clippy::disallowed_methods, reason = "the control must not go through what it controls")]
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
        scheduled.lock().unwrap_or_else(PoisonError::into_inner).push(at);
        stream.write_all(request.as_bytes()).await?;
        // One read is enough: the answer is far smaller than the buffer, and none is judged.
        if stream.read(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

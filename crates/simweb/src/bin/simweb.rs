//! The simulated web as a separate program, for harnesses that kill and restart processes.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use clap::Parser;
use fetchwell_simweb::{Hit, Server, SiteScript, World, write_hits};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

/// Serves a simulated web on one address; sites are told apart by the Host header.
#[derive(Parser)]
struct Arguments {
    /// The address to listen on; port 0 takes any free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Listen on this port of every loopback address (127.0.0.0/8) instead; 0 takes any free port.
    #[arg(long, value_name = "PORT", conflicts_with = "listen")]
    loopback: Option<u16>,
    /// A JSON array of site scripts.
    #[arg(long, value_name = "FILE.json")]
    world: PathBuf,
    /// The file to which every hit is appended as a line of JSON.
    #[arg(long, value_name = "FILE.jsonl")]
    record: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let world = Arc::new(read_world(&arguments.world)?);
    let mut record = Record::open(&arguments.record)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;

    let server = start(&arguments, Arc::clone(&world))?;
    let started_at = unix_time() - server.started().elapsed();
    announce(server.addr())?;

    let mut tick = interval(FLUSH_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => record.append(world.take_hits(), started_at)?,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    server.stop().await;
    record.append(world.take_hits(), started_at)
}

fn start(arguments: &Arguments, world: Arc<World>) -> anyhow::Result<Server> {
    match arguments.loopback {
        Some(port) => Server::start_on_loopback(world, port)
            .with_context(|| format!("listening on port {port} of every loopback address")),
        None => Server::start(world, arguments.listen)
            .with_context(|| format!("listening on {}", arguments.listen)),
    }
}

/// Half of the 100 ms within which a hit must be in the file.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

fn read_world(path: &PathBuf) -> anyhow::Result<World> {
    let json = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let scripts: Vec<SiteScript> =
        serde_json::from_slice(&json).with_context(|| format!("in {}", path.display()))?;
    Ok(World::new(scripts))
}

struct Record {
    file: BufWriter<File>,
}

impl Record {
    fn open(path: &PathBuf) -> anyhow::Result<Record> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        Ok(Record { file: BufWriter::new(file) })
    }

    /// Writes these hits to the file at once, with times since the Unix epoch.
    fn append(&mut self, mut hits: Vec<Hit>, started_at: Duration) -> anyhow::Result<()> {
        for hit in &mut hits {
            hit.at += started_at;
        }
        write_hits(&mut self.file, &hits).context("recording hits")?;
        self.file.flush().context("recording hits")
    }
}

/// The time since the Unix epoch. It is read once, at the start; after that the monotonic clock is used, so that a step
/// of the wall clock never makes a hit look too early or too late.
#[expect(clippy::disallowed_methods, reason = "records of several processes need one clock")]
fn unix_time() -> Duration {
    std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[expect(clippy::print_stdout, reason = "the harness reads the port from this line")]
fn announce(addr: SocketAddr) -> anyhow::Result<()> {
    println!("listening {addr}");
    std::io::stdout().flush().context("announcing the address")
}

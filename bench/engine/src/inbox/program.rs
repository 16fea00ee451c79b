//! The real program, `fetchwell serve`, which is expected beside this one unless another is named.

use std::fs::read_to_string;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::store::Store;
use crate::origin::Origin;

/// The clock ticks of Linux a second, in which it counts processor time.
const TICKS_PER_SECOND: f64 = 100.0;

/// A server that runs. It ends with its owner.
pub(super) struct Program {
    child: Child,
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// The token of its first caller.
    pub(super) token: String,
}

/// How fast it fetches.
pub(super) enum Fetching {
    /// As good as not at all: one page, and the next a quarter of an hour later.
    Hardly,
    /// As fast as it can.
    Unpaced,
}

impl Program {
    /// Starts it on a store, with a web where every `*.test` is that origin.
    pub(super) fn start(store: &Store, origin: &Origin, fetching: &Fetching) -> Result<Program> {
        let path = std::env::current_exe()?.with_file_name("fetchwell");
        let build = "build it with `cargo build-dist`";
        ensure!(path.exists(), "there is no {}; {build}", path.display());
        Program::start_this(&path, store, origin, fetching)
    }

    /// Starts a certain program.
    pub(super) fn start_this(
        path: &Path,
        store: &Store,
        origin: &Origin,
        fetching: &Fetching,
    ) -> Result<Program> {
        let mut command = Command::new(path);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(store.folder())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .env("FETCHWELL_STORE", store.address()?)
            .env("FETCHWELL_RESOLVE", format!("*.test=127.0.0.1:{}", origin.port))
            .env("FETCHWELL_ALLOW_PRIVATE", "127.0.0.0/8")
            .env("FETCHWELL_RETRIEVER__CALLER_RATE", "0");
        let (rate, retailers_rate, burst) = match fetching {
            Fetching::Hardly => ("0.001", "0.001", "1"),
            Fetching::Unpaced => ("0", "10000", "100000"),
        };
        command
            .env("FETCHWELL_RATE", rate)
            .env("FETCHWELL_I_OWN_THESE_SITES", "true")
            .env("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", retailers_rate)
            .env("FETCHWELL_RETRIEVER__DEFAULT_BURST_SIZE", burst);
        let mut child = command.spawn()?;
        let said = child.stdout.take();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut program = Program { child, address, token: String::new() };
        let said = said.context("the program says nothing")?;
        (program.address, program.token) = welcome(BufReader::new(said))?;
        Ok(program)
    }

    /// Microseconds of processor time that it has used.
    pub(super) fn processor_micros(&self) -> Result<f64> {
        let stat = read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // Counted from behind the name, which may have any characters in it.
        let (_, fields) = stat.rsplit_once(')').context("a strange /proc/PID/stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        let ticks: f64 = ticks.sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS_PER_SECOND * 1e6)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; its store goes with it anyway.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads what a first start says, up to its last line.
fn welcome(said: impl BufRead) -> Result<(SocketAddr, String)> {
    let mut text = String::new();
    for line in said.lines() {
        text.push_str(&line?);
        text.push('\n');
        if text.contains("fetchwell callers add NAME") {
            break;
        }
    }
    let word = |beginning: &str| {
        let found = text.split_whitespace().find_map(|word| word.strip_prefix(beginning));
        found.with_context(|| format!("no {beginning} in what `fetchwell serve` said: {text}"))
    };
    let address = word("http://")?.trim_end_matches('/').parse()?;
    Ok((address, format!("fw_{}", word("fw_")?)))
}

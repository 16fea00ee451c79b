use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::eventually::eventually_ok;

/// A running process. Its output goes to temporary files, so that a full pipe never blocks it. Dropping it kills it.
pub struct Process {
    child: Child,
    started: Instant,
    stdout: File,
    stderr: File,
}

impl Process {
    pub(super) fn spawn(mut command: Command) -> Process {
        let stdout = scratch_file();
        let stderr = scratch_file();
        command.stdout(writer_of(&stdout)).stderr(writer_of(&stderr));
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Process { child, started: Instant::now(), stdout, stderr }
    }

    pub fn is_running(&mut self) -> bool {
        let ended = self.child.try_wait().unwrap_or_else(|error| panic!("no news of it: {error}"));
        ended.is_none()
    }

    /// Its standard error so far.
    pub fn said_so_far(&self) -> String {
        let mut bytes = vec![0; usize::try_from(length_of(&self.stderr)).unwrap_or(0)];
        let read = self.stderr.read_exact_at(&mut bytes, 0);
        read.unwrap_or_else(|error| panic!("a scratch file can't be read: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until `find` finds something in its standard error.
    pub async fn until_said<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        eventually_ok(what, async || {
            let runs = self.is_running();
            let said = self.said_so_far();
            let found = find(&said);
            assert!(runs || found.is_some(), "it ended without {what}:\n{said}");
            found.ok_or(said)
        })
        .await
    }

    /// Its peak memory so far; `None` once it has ended.
    pub fn peak_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kib: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib << 10)
    }

    /// SIGKILL: it ends at once, without cleaning up.
    pub async fn kill(mut self) -> ProcessEnd {
        self.child.kill().await.unwrap_or_else(|error| panic!("it can't be killed: {error}"));
        self.left_behind(None)
    }

    /// SIGTERM: it should shut down gracefully.
    pub async fn terminate(&self) {
        self.signal("TERM").await;
    }

    /// SIGSTOP: it is suspended without noticing.
    pub async fn stop(&self) {
        self.signal("STOP").await;
    }

    /// SIGCONT: it continues.
    pub async fn go_on(&self) {
        self.signal("CONT").await;
    }

    /// Waits for its end; if it still runs at the deadline, it is killed and the test fails.
    pub async fn wait(mut self, deadline: Duration) -> ProcessEnd {
        let Ok(status) = timeout(deadline, self.child.wait()).await else {
            let stderr = text_of(&mut self.stderr);
            panic!("still running after {deadline:?}; its standard error:\n{stderr}");
        };
        let status = status.unwrap_or_else(|error| panic!("no news of it: {error}"));
        self.left_behind(status.code())
    }

    fn left_behind(mut self, code: Option<i32>) -> ProcessEnd {
        ProcessEnd {
            code,
            stdout: text_of(&mut self.stdout),
            stderr: text_of(&mut self.stderr),
            took: self.started.elapsed(),
        }
    }

    async fn signal(&self, name: &str) {
        // Only a process that was waited for has no id, and `wait` consumes it.
        let id = self.child.id().unwrap_or_else(|| panic!("it has ended before SIG{name}"));
        let sent = Command::new("kill").args(["-s", name, &id.to_string()]).status().await;
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} could not be sent");
    }
}

/// The result of a process.
#[derive(Debug)]
pub struct ProcessEnd {
    /// Its exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// How long it ran.
    pub took: Duration,
}

impl ProcessEnd {
    /// Checks the exit code; if it differs, shows the output of the process.
    #[track_caller]
    pub fn expect_code(self, expected: i32) -> ProcessEnd {
        assert_eq!(
            self.code,
            Some(expected),
            "exit code; standard output:\n{}\nstandard error:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// How often it lost its lease. On a busy machine this can happen without a SIGSTOP.
    pub fn leases_lost(&self) -> usize {
        self.stderr.matches("this instance was considered dead").count()
    }
}

/// An unnamed file, which is deleted automatically.
pub(super) fn scratch_file() -> File {
    tempfile::tempfile().unwrap_or_else(|error| panic!("no scratch file: {error}"))
}

fn writer_of(file: &File) -> Stdio {
    file.try_clone().unwrap_or_else(|error| panic!("no second handle: {error}")).into()
}

fn length_of(file: &File) -> u64 {
    let metadata = file.metadata();
    metadata.unwrap_or_else(|error| panic!("a scratch file can't be read: {error}")).len()
}

fn text_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.unwrap_or_else(|error| panic!("a scratch file can't be read: {error}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

//! One shell for one page, as a reader has it: what a block sets, the blocks after it find.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fetchwell_testkit::DEADLINE;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::markdown::{Block, Manner};
use crate::wildcard::{begins, matches};

/// What stays is told to stop at the end of its page; that takes no longer.
const STOPS_WITHIN: Duration = Duration::from_secs(30);
/// What is to come soon is looked for so often.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(20);

/// A shell at work in a folder of its own. All that it starts is ended with it.
pub(crate) struct Session {
    folder: TempDir,
    /// The files of the session itself, which no page is to see.
    notes: TempDir,
    shell: Child,
    typing: ChildStdin,
    blocks_so_far: usize,
}

impl Session {
    /// A fresh folder, and nothing in the environment but what is given.
    pub(crate) fn begin(variables: &[(String, String)]) -> Session {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = tempfile::tempdir().expect("a folder");
        let mut shell = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .env("LANG", "C.UTF-8")
            .env("PATH", search_path())
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            // So that a signal reaches all that the page started, and nothing else.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("bash starts");
        let typing = shell.stdin.take().expect("it is piped");
        Session { folder, notes, shell, typing, blocks_so_far: 0 }
    }

    /// The folder in which the page is read.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a block and compares; the fault in words, if there is one.
    pub(crate) async fn run(&mut self, block: &Block) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let outcome = self.run_once(block).await;
            if block.manner != Manner::Soon || outcome.is_ok() || began.elapsed() > DEADLINE {
                return outcome;
            }
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    async fn run_once(&mut self, block: &Block) -> Result<(), String> {
        self.blocks_so_far += 1;
        let note = |name: &str| self.notes.path().join(format!("{}-{name}", self.blocks_so_far));
        let [commands, out, err, failed, code] =
            ["commands", "out", "err", "failed", "code"].map(note);
        std::fs::write(&commands, &block.commands).expect("the commands are written");
        let run = format!(
            "source {} >{} 2>{} </dev/null",
            commands.display(),
            out.display(),
            err.display()
        );
        let told = Told { out, err };
        let expected = match block.manner {
            Manner::NotAtAll { .. } => return Ok(()),
            Manner::Stays => {
                self.enter(&format!("{run} &\n")).await;
                return told.begins(block).await;
            }
            Manner::Soon => 0,
            Manner::ToItsEnd { code } => code,
        };
        // The trap hears of every command that fails, as `set -e` would, and goes on.
        let trap = format!("trap 'echo \"$BASH_COMMAND\" >>{}' ERR", failed.display());
        let part = code.with_extension("part");
        let part = part.display();
        let whole = code.display();
        let end = format!("echo $? >{part}; trap - ERR; mv {part} {whole}");
        self.enter(&format!("set -E; {trap}\n{run}; {end}\n")).await;
        let code = self.code(&code).await.ok_or_else(|| told.fault("it does not end"))?;
        told.ended(block, expected, code, &read(&failed))
    }

    async fn enter(&mut self, text: &str) {
        self.typing.write_all(text.as_bytes()).await.expect("the shell listens");
        self.typing.flush().await.expect("the shell listens");
    }

    async fn code(&self, file: &Path) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < DEADLINE {
            if let Ok(code) = read(file).trim().parse() {
                return Some(code);
            }
            sleep(POLL).await;
        }
        None
    }

    /// Ends all that stays.
    pub(crate) async fn end(mut self) {
        let group = self.shell.id().expect("it has not ended");
        signal(group, "TERM").await;
        // The shell itself is told by the end of its input, and waits for nobody.
        drop(self.typing);
        timeout(STOPS_WITHIN, self.shell.wait()).await.ok();
        let began = Instant::now();
        while signal(group, "0").await && began.elapsed() < STOPS_WITHIN {
            sleep(POLL).await;
        }
        signal(group, "KILL").await;
    }
}

/// Sends a signal to a process group of ours; whether anybody is left in it.
async fn signal(group: u32, name: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-s", name, "--", &format!("-{group}")]).stderr(Stdio::null());
    kill.status().await.is_ok_and(|status| status.success())
}

/// What a block printed, in files.
struct Told {
    out: PathBuf,
    err: PathBuf,
}

impl Told {
    async fn begins(&self, block: &Block) -> Result<(), String> {
        let output = block.output.as_deref().unwrap_or("");
        let log = block.log.as_deref().unwrap_or("");
        if output.is_empty() && log.is_empty() {
            return Err("what stays must be shown to print something, by which it has begun".into());
        }
        let began = Instant::now();
        while began.elapsed() < DEADLINE {
            if begins(output, &read(&self.out)) && begins(log, &read(&self.err)) {
                return Ok(());
            }
            sleep(POLL).await;
        }
        Err(self.fault("it does not begin as shown"))
    }

    fn ended(&self, block: &Block, expected: i32, code: i32, failed: &str) -> Result<(), String> {
        if code != expected {
            return Err(self.fault(&format!("it ended with {code}, not {expected}")));
        }
        if expected == 0 && !failed.is_empty() {
            return Err(self.fault(&format!("a command before the last one failed: {failed}")));
        }
        if block.output.as_ref().is_some_and(|shown| !matches(shown, &read(&self.out))) {
            return Err(self.fault("it printed something else"));
        }
        if block.log.as_ref().is_some_and(|shown| !matches(shown, &read(&self.err))) {
            return Err(self.fault("it logged something else"));
        }
        Ok(())
    }

    fn fault(&self, what: &str) -> String {
        let mut text = what.to_owned();
        for (name, file) in [("output", &self.out), ("errors", &self.err)] {
            write!(text, "\n--- {name}\n{}", read(file)).expect("a text grows");
        }
        text
    }
}

/// The program that was just built comes first.
fn search_path() -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_fetchwell")).parent().expect("it is in a folder");
    let usual = std::env::var("PATH").unwrap_or_default();
    format!("{}:{usual}", built.display())
}

fn read(file: &Path) -> String {
    std::fs::read(file)
        .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

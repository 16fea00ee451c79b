use std::ffi::OsStr;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

use super::process::scratch_file;
use super::{Process, ProcessEnd, TestWeb};
use crate::DEADLINE;

/// A program in its own temporary folder, isolated from the environment of the test, so that no settings of the
/// developer or of the test affect it.
pub struct Program {
    path: PathBuf,
    folder: TempDir,
    variables: Vec<(String, String)>,
    store_variable: &'static str,
    flags: Vec<String>,
}

impl Program {
    /// The program at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Program {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder: {error}"));
        Program {
            path: path.into(),
            folder,
            variables: Vec::new(),
            store_variable: "FETCHWELL_STORE",
            flags: Vec::new(),
        }
    }

    /// Makes its processes find all `.test` hosts at this origin.
    pub fn on(self, origin: &TestWeb) -> Program {
        self.flags(origin.flags())
    }

    /// Adds flags that all its processes get.
    pub fn flags<F: Into<String>>(mut self, flags: impl IntoIterator<Item = F>) -> Program {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// The same for a program that is already in use.
    pub(super) fn add_flags(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
    }

    /// Adds a variable to the environment of all its processes.
    pub fn variable(mut self, name: &str, value: &str) -> Program {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Names the [`store`](Program::store) in this variable instead of `FETCHWELL_STORE`.
    pub fn store_variable(self, store_variable: &'static str) -> Program {
        Program { store_variable, ..self }
    }

    /// Makes its processes use the store at this URL.
    pub fn store(self, url: &str) -> Program {
        let name = self.store_variable;
        self.variable(name, url)
    }

    /// The working directory of its processes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in that folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a process with these arguments.
    pub fn start(&self, arguments: &[&str]) -> Process {
        Process::spawn(self.command(arguments))
    }

    /// Starts a process with these arguments and additional variables.
    pub fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        Process::spawn(command)
    }

    /// Runs a process until it ends.
    pub async fn run(&self, arguments: &[&str]) -> ProcessEnd {
        self.start(arguments).wait(DEADLINE).await
    }

    /// Runs a process with this standard input until it ends.
    pub async fn run_with_input(&self, arguments: &[&str], input: &str) -> ProcessEnd {
        let mut file = scratch_file();
        let written = file.write_all(input.as_bytes()).and_then(|()| file.rewind());
        written.unwrap_or_else(|error| panic!("no input: {error}"));
        let mut command = self.command(arguments);
        command.stdin(Stdio::from(file));
        Process::spawn(command).wait(DEADLINE).await
    }

    /// A command with these arguments, for other uses.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(&self.flags)
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", OsStr::new(self.folder.path()))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

use crate::conformance::servers::server_url;
use crate::replay::is_soak;

/// How often to try to start a crashed server.
const RESTARTS: usize = 20;

/// A server that belongs to the test, so that it can be crashed. Dropping it stops it.
pub struct OwnServer {
    name: &'static str,
    folder: TempDir,
    url: String,
}

impl OwnServer {
    /// Starts `redis`, `postgres`, `kafka` or `rabbitmq`. `None` if tests run without servers; the skip is reported. A
    /// soak run always has them.
    pub async fn start(name: &'static str) -> Option<OwnServer> {
        if !is_soak() {
            server_url(&variable(name))?;
        }
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder: {error}"));
        let mut server = OwnServer { name, folder, url: String::new() };
        server.script("start").await;
        let env = server.script("env").await;
        let url = env.trim().split_once('=').map(|(_, url)| url.to_owned());
        server.url = url.unwrap_or_else(|| panic!("{name} has no address: {env}"));
        Some(server)
    }

    /// Its URL, which is the same after a crash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder with its data.
    pub fn data_folder(&self) -> PathBuf {
        self.folder.path().join(self.name).join("data")
    }

    /// Sends SIGKILL to all of its processes.
    pub async fn crash(&self) {
        let file = self.folder.path().join(self.name).join("pid");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let pid = text.split(' ').next().unwrap_or_default().trim().to_owned();
        // It is a session leader, so this also reaches its child processes.
        let killed = Command::new("kill").args(["-KILL", "--", &format!("-{pid}")]).status().await;
        assert!(killed.is_ok_and(|status| status.success()), "{} could not be killed", self.name);
    }

    /// Stops it cleanly, and keeps its data.
    pub async fn stop(&self) {
        self.script("stop --keep").await;
    }

    /// Starts it again on its old data. Child processes of a killed server may still lock that for a moment.
    pub async fn restart(&self) {
        for _ in 0..RESTARTS {
            // `output` instead of `status`, which closes the pipe: the script fails if it cannot write.
            if self.command("start").output().await.is_ok_and(|output| output.status.success()) {
                return;
            }
        }
        self.script("start").await;
    }

    /// Runs `rabbitmqctl` on a RabbitMQ server.
    pub async fn rabbitmqctl(&self, arguments: &[&str]) {
        let mut command = Command::new(script());
        command.arg("rabbitmqctl").args(arguments).stdin(Stdio::null());
        command.env("FETCHWELL_TEST_SERVERS", self.folder.path());
        let output = command.output().await;
        let output = output.unwrap_or_else(|error| panic!("scripts/servers: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "rabbitmqctl {arguments:?}: {said}");
    }

    async fn script(&self, verb: &str) -> String {
        let output = self.command(verb).output().await;
        let output = output.unwrap_or_else(|error| panic!("scripts/servers: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "scripts/servers {verb} {}: {said}", self.name);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(script());
        command
            .args(verb.split(' '))
            .arg(self.name)
            .env("FETCHWELL_TEST_SERVERS", self.folder.path())
            .env_remove(variable(self.name))
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        command
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let stopped = self.command("stop").into_std().status();
        assert!(stopped.is_ok_and(|status| status.success()), "{} was not stopped", self.name);
    }
}

fn variable(name: &str) -> String {
    let what = if name == "kafka" { "BOOTSTRAP" } else { "URL" };
    format!("FETCHWELL_TEST_{}_{what}", name.to_uppercase())
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/servers")
}

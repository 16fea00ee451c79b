use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::Program;
use crate::DEADLINE;
use crate::eventually::eventually_ok;

/// Its output goes to these files in its folder.
const SAID: &str = "said.txt";
const LOG: &str = "log.txt";

/// Any free port.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A running `fetchwell serve` on a free port. Dropping it kills it.
pub struct Service {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The token of its first caller, an operator, which it printed at its first start.
    pub token: String,
    /// That caller's webhook secret.
    pub secret: String,
    program: Program,
    child: Child,
}

impl Service {
    /// Starts a service on a new store.
    pub async fn start(program: Program) -> Service {
        Service::start_at(program, ANY).await
    }

    /// Starts a service on a new store, at this address.
    pub async fn start_at(program: Program, listen: SocketAddr) -> Service {
        let (child, address) = launch(&program, listen).await;
        let said = read(&program.file(SAID));
        let word = |beginning: &str| {
            let found = said.split_whitespace().find(|word| word.starts_with(beginning));
            found.unwrap_or_else(|| panic!("no {beginning} in {said}")).to_owned()
        };
        let token = word("fw_");
        let secret = word("whsec_");
        Service { address, token, secret, program, child }
    }

    /// The program, for other commands on the same store.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Adds a caller, and returns its token.
    pub async fn caller(&self, name: &str, role: &str) -> String {
        let add = ["--json", "callers", "add", name, "--role", role];
        let added = self.program.run(&add).await.expect_code(0).stdout;
        let added: Value =
            serde_json::from_str(&added).unwrap_or_else(|error| panic!("{error}: {added}"));
        added["token"].as_str().unwrap_or_else(|| panic!("no token in {added}")).to_owned()
    }

    /// Its log since this start.
    pub fn log(&self) -> String {
        read(&self.program.file(LOG))
    }

    /// Sends SIGTERM and waits for its end, which must be clean.
    pub async fn stop(&mut self) {
        let id = self.child.id().unwrap_or_else(|| panic!("it has ended before"));
        let sent = Command::new("kill").args(["-s", "TERM", &id.to_string()]).status().await;
        assert!(sent.is_ok_and(|status| status.success()), "it could not be told to stop");
        let ended = timeout(DEADLINE, self.child.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("it does not stop:\n{}", self.log()));
        assert!(ended.is_ok_and(|status| status.success()), "it ended badly:\n{}", self.log());
    }

    /// Starts it again with these additional flags, at another address.
    pub async fn start_again_with(&mut self, flags: &[&str]) {
        self.program.add_flags(flags);
        self.start_again().await;
    }

    /// Starts it again on its store, at another address.
    pub async fn start_again(&mut self) {
        (self.child, self.address) = launch(&self.program, ANY).await;
    }
}

async fn launch(program: &Program, listen: SocketAddr) -> (Child, SocketAddr) {
    let file = |name: &str| {
        let path = program.file(name);
        File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let mut command = program.command(&["serve", "--listen", &listen.to_string()]);
    command.stdout(file(SAID)).stderr(file(LOG));
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let address = eventually_ok("the service to come up", async || {
        let runs = matches!(child.try_wait(), Ok(None));
        let log = read(&program.file(LOG));
        let address = listens_on(&log);
        assert!(runs || address.is_some(), "it does not come up:\n{log}");
        address.ok_or(log)
    })
    .await;
    (child, address)
}

fn listens_on(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("listening on http://")?;
    rest.split_once(';')?.0.parse().ok()
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

//! A real `fetchwell serve` in a folder of its own, on a simulated web.

use std::net::SocketAddr;
use std::process::Stdio;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Program, TestWeb};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::client::{self, Response};
use crate::fetch::ARTICLE;

pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) secret: String,
    pub(crate) program: Program,
    pub(crate) origin: TestWeb,
    pub(crate) child: Child,
}

impl Service {
    pub(crate) async fn start(settings: &[(&str, &str)]) -> Service {
        Service::start_with(settings, []).await
    }

    /// The same with more sites than the shop.
    pub(crate) async fn start_with(
        settings: &[(&str, &str)],
        more: impl IntoIterator<Item = SiteScript>,
    ) -> Service {
        let shop = SiteScript::new("shop.test")
            .text("/page", "text/html", "<title>A page</title><p>Some words on it.</p>")
            .text("/article", "text/html", ARTICLE)
            .binary("/photo", "image/jpeg", 999)
            .status("/missing", 404);
        let origin = TestWeb::start(more.into_iter().chain([shop]));
        let mut program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin).flags([
            "--rate",
            "0",
            "--i-own-these-sites",
        ]);
        for (name, value) in settings {
            program = program.variable(name, value);
        }
        let mut command = program.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        let reading = async {
            while !said.contains("fetchwell callers add NAME") {
                said.push_str(&lines.next_line().await.unwrap().expect("a welcome"));
                said.push('\n');
            }
        };
        timeout(DEADLINE, reading).await.expect("a welcome in time");
        let word = |beginning: &str| {
            let found = said.split_whitespace().find_map(|word| word.strip_prefix(beginning));
            found.unwrap_or_else(|| panic!("no {beginning} in {said}")).to_owned()
        };
        let address = word("http://").trim_end_matches('/').parse().unwrap();
        let token = format!("fw_{}", word("fw_"));
        let secret = word("whsec_");
        Service { address, token, secret, program, origin, child }
    }

    /// Adds a caller, and returns its token.
    pub(crate) async fn caller(&self, name: &str, role: &str) -> String {
        let add = ["--json", "callers", "add", name, "--role", role];
        let added = self.program.run(&add).await.expect_code(0);
        let added: Value = serde_json::from_str(&added.stdout).unwrap();
        added["token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.get_as(&self.token, path).await
    }

    pub(crate) async fn get_as(&self, token: &str, path: &str) -> Response {
        self.send("GET", path, &[("authorization", &format!("Bearer {token}"))], "").await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Response {
        self.post_as(&self.token, path, headers, &body.to_string()).await
    }

    pub(crate) async fn post_as(
        &self,
        token: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let bearer = format!("Bearer {token}");
        let mut all = vec![("authorization", &*bearer), ("content-type", "application/json")];
        all.extend(headers);
        self.send("POST", path, &all, body).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        client::raw(self.address, &client::request(method, path, headers, body)).await
    }
}

pub(crate) fn message(path: &str) -> Value {
    json!({"url": format!("http://shop.test{path}"), "retailer": "admhr", "correlation_id": path})
}

//! A process that lacks something, or whose log nobody reads: no page and no site is blamed for that.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Program, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http::ask;
use fetchwell_testkit::replay::is_soak;
use fetchwell_testkit::skip::skipped;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::timeout;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).variable("FETCHWELL_RATE", "0")
}

/// The same command, run by a shell after something else.
fn after(first: &str, command: &Command) -> Command {
    let inner = command.as_std();
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(format!("{first} && exec \"$0\" \"$@\""))
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(inner.get_current_dir().unwrap())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    shell
}

/// Outcomes of the rows that were printed, and their reasons.
fn outcomes(stdout: &[u8]) -> Vec<(String, String)> {
    let rows = std::str::from_utf8(stdout).unwrap().lines();
    let word = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    rows.map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|row| (word(&row, "outcome"), word(&row, "reason")))
        .collect()
}

fn write_list(program: &Program, urls: impl IntoIterator<Item = String>) -> String {
    let urls: Vec<String> = urls.into_iter().collect();
    std::fs::write(program.file("urls.txt"), urls.join("\n")).unwrap();
    "@urls.txt".to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_stops_no_service() {
    for (command, listen) in [("serve", "--listen"), ("pages", "--metrics-listen")] {
        let program = program();
        let free = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut service = program.command(&[command, listen, &address.to_string()]);
        let mut service = service.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(service.stderr.take());
        eventually_ok("an answer", async || {
            assert_eq!(service.try_wait().unwrap(), None, "{command} has ended");
            let answer = ask(address, "", "GET /livez", &[], "").await;
            let status = answer.map(|answer| answer.status).map_err(|error| error.to_string())?;
            if status == 200 { Ok(()) } else { Err(format!("{command} answers {status}")) }
        })
        .await;
        let id = service.id().unwrap().to_string();
        let stopped = Command::new("kill").args(["-s", "TERM", &id]).status().await;
        assert!(stopped.unwrap().success());
        let ended = timeout(DEADLINE, service.wait()).await.unwrap().unwrap();
        assert_eq!(ended.code(), Some(0), "{command}");
    }
}

/// Many sites, few descriptors: it takes longer, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn with_few_descriptors_healthy_sites_stay_healthy() {
    let sites: Vec<String> = (0..150).map(|n| format!("s{n}.test")).collect();
    let origin = TestWeb::start(sites.iter().map(|site| SiteScript::new(site)));
    let program = program().on(&origin);
    let urls = sites.iter().flat_map(|site| (0..2).map(move |n| format!("http://{site}/{n}")));
    let list = write_list(&program, urls);
    for limit in ["64", "256"] {
        let fetch = program.command(&["fetch", &list, "--json", "--give-up-after", "20s"]);
        let mut fetch = after(&format!("ulimit -n {limit}"), &fetch);
        let ended = timeout(DEADLINE, fetch.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        let outcomes = outcomes(&ended.stdout);
        let failed: Vec<_> = outcomes.iter().filter(|(word, _)| word != "fetched").collect();
        assert!(failed.is_empty(), "ulimit -n {limit}: {failed:?}\n{said}");
        assert_eq!((ended.status.code(), outcomes.len()), (Some(0), 300), "{said}");
        assert!(said.contains(&format!("{limit} open files")), "{said}");
    }
}

/// How many hostile pages, and what they may take. Without a bound a page takes about 20 MB.
struct Size {
    pages: usize,
    body_budget: &'static str,
    group_bytes: u64,
}

const SHORT: Size = Size { pages: 16, body_budget: "64MiB", group_bytes: 200_000_000 };
const LONG: Size = Size { pages: 80, body_budget: "256MiB", group_bytes: 600_000_000 };

/// What each hostile page is: so many bytes of `<`.
const PAGE_BYTES: usize = 10 << 20;

/// Serves hostile pages on every path but robots.txt, piece by piece.
async fn hostile_pages() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_page(stream));
        }
    });
    address
}

async fn serve_page(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = vec![0; 4_096];
    let read = stream.read(&mut head).await?;
    if head[..read].starts_with(b"GET /robots.txt") {
        let none = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        return stream.write_all(none).await;
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/html\r\n\
         content-length: {PAGE_BYTES}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let piece = [b'<'; 64 << 10];
    for _ in 0..PAGE_BYTES / piece.len() {
        stream.write_all(&piece).await?;
    }
    Ok(())
}

/// A group of processes that may have so much memory together.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// `None` where no such group can be made.
    fn of_bytes(bytes: u64) -> Option<MemoryGroup> {
        let name = format!("fetchwell-test-{}", std::process::id());
        [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
            .into_iter()
            .find_map(|(root, limit)| {
                let folder = Path::new(root).join(&name);
                std::fs::create_dir(&folder).ok()?;
                let group = MemoryGroup(folder);
                std::fs::write(group.0.join(limit), bytes.to_string()).ok()?;
                // Without swap, where that can be said.
                for (file, most) in [("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", bytes)]
                {
                    let file = group.0.join(file);
                    if file.exists() {
                        std::fs::write(file, most.to_string()).ok()?;
                    }
                }
                Some(group)
            })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        drop(std::fs::remove_dir(&self.0));
    }
}

/// Without a bound on what pages hold until they are stored, forty of these took more than 800 MB.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_pages_stay_within_the_memory_of_their_group() {
    let size = if is_soak() { LONG } else { SHORT };
    let Some(group) = MemoryGroup::of_bytes(size.group_bytes) else {
        return skipped(
            "no memory cgroup can be made, so the memory of hostile pages is not bounded",
        );
    };
    let address = hostile_pages().await;
    let program = program().flags([
        "--resolve".to_owned(),
        format!("*.test={address}"),
        "--allow-private".to_owned(),
        "127.0.0.0/8".to_owned(),
    ]);
    let program = program.variable("FETCHWELL_HTTP__BODY_BUDGET", size.body_budget);
    let urls = (0..size.pages).map(|n| format!("http://s{}.test/{n}", n % 8));
    let list = write_list(&program, urls);
    let fetch = program.command(&["fetch", &list, "--json", "--output", "out.jsonl"]);
    let join = format!("echo $$ > {}/cgroup.procs", group.0.display());
    // Only the test runner limits its time: reading these pages is all work, and a busy machine needs minutes for it.
    let ended = after(&join, &fetch).output().await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{}: {said}", ended.status);
    let outcomes = outcomes(&std::fs::read(program.file("out.jsonl")).unwrap());
    assert_eq!(outcomes.len(), size.pages);
    for (outcome, reason) in outcomes {
        assert_eq!(outcome, "fetched", "{reason}");
        assert!(reason.contains("extract.max_text"), "{reason}");
    }
}

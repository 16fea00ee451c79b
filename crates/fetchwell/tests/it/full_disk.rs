//! The built program on a disk that is full: a small file system, in a namespace in which it can be mounted.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::namespace;
use serde_json::{Value, json};

use crate::client;

/// What the program says of a full disk, whichever file did not fit.
const FREE_SPACE: &str = "free some space on its disk";

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).variable("FETCHWELL_RATE", "0")
}

/// A file system of its own in the folder `small` of a program.
struct Disk(PathBuf);

impl Disk {
    fn mount(program: &Program, size: &str) -> Disk {
        let folder = program.file("small");
        std::fs::create_dir(&folder).unwrap();
        mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &folder);
        Disk(folder)
    }
}

/// So that the folder of the program can be removed.
impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}

fn mount(arguments: &[&str], folder: &Path) {
    let mounted = Command::new("mount").args(arguments).arg(folder).status().unwrap();
    assert!(mounted.success(), "{} can't be mounted", folder.display());
}

/// Leaves no space in a folder.
fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    path
}

fn inside(test: &str, case: impl Future<Output = ()>) {
    if namespace::is_inside(&format!("full_disk::{test}")) {
        tokio::runtime::Runtime::new().unwrap().block_on(case);
    }
}

#[test]
fn a_fetch_says_what_is_wrong_and_goes_on_when_there_is_space_again() {
    let test = "a_fetch_says_what_is_wrong_and_goes_on_when_there_is_space_again";
    inside(test, fetch_until_the_disk_is_full());
}

async fn fetch_until_the_disk_is_full() {
    let pages: Vec<String> = (0..80).map(|number| format!("/{number}")).collect();
    let text = "All work and no play makes a dull page. ".repeat(800);
    let shop = pages
        .iter()
        .fold(SiteScript::new("shop.test"), |site, path| site.text(path, "text/plain", &text));
    let origin = TestWeb::start([shop]);
    let program = program().on(&origin);
    // Enough for the store, and not for all rows.
    let disk = Disk::mount(&program, "3m");
    let list: String = pages.iter().map(|path| format!("http://shop.test{path}\n")).collect();
    std::fs::write(program.file("list"), list).unwrap();
    let fetch = [
        "fetch",
        "@list",
        "--store",
        "sqlite:small/fetchwell.db",
        "--output",
        "small/rows.jsonl",
        "--give-up-after",
        "3s",
    ];
    let ended = program.run(&fetch).await.expect_code(1);
    let said = ended.stderr;
    assert!(said.contains("gave up after") && said.contains("--resume"), "{said}");
    // One warning, and the last words.
    assert_eq!(said.matches(FREE_SPACE).count(), 2, "{said}");

    mount(&["-o", "remount,size=64m"], &disk.0);
    program.run(&[&fetch[..], &["--resume"]].concat()).await.expect_code(0);
    let rows = std::fs::read_to_string(disk.0.join("rows.jsonl")).unwrap();
    let url = |line: &str| serde_json::from_str::<Value>(line).unwrap()["url"].to_string();
    let urls: BTreeSet<String> = rows.lines().map(url).collect();
    assert_eq!((rows.lines().count(), urls.len()), (80, 80));
    assert!(!disk.0.join("fetchwell.db-wal").exists(), "the last to leave merges the WAL");
}

#[test]
fn a_service_is_not_ready_until_there_is_space_again() {
    let test = "a_service_is_not_ready_until_there_is_space_again";
    inside(test, serve_on_a_full_disk());
}

async fn serve_on_a_full_disk() {
    let program = program().variable("FETCHWELL_STORE", "sqlite:small/fetchwell.db");
    let disk = Disk::mount(&program, "8m");
    let service = Service::start(program).await;
    let disk = disk; // It goes before the service, whose folder it is in.
    let get = async |path: &str| {
        client::raw(service.address, &client::request("GET", path, &[], "")).await
    };
    let until = async |status: u16| {
        eventually_ok(&format!("{status} at /readyz"), async || {
            let answer = get("/readyz").await;
            if answer.status == status { Ok(()) } else { Err(service.log()) }
        })
        .await;
    };
    until(200).await;
    let filler = fill(&disk.0);
    until(503).await;
    let problem = get("/readyz").await.expect(503).json();
    assert!(problem["detail"].as_str().unwrap().starts_with("The store is failing: "), "{problem}");
    let bearer = format!("Bearer {}", service.token);
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let body = json!({"url": "http://a.test/", "retailer": "r", "correlation_id": "c"}).to_string();
    let post = client::request("POST", "/fetch", &headers, &body);
    for _ in 0..20 {
        client::raw(service.address, &post).await.expect(503);
    }
    get("/livez").await.expect(200);
    let log = service.log();
    let warnings = log.matches(FREE_SPACE).count();
    assert!((1..=2).contains(&warnings), "one line a minute, however often it fails: {log}");

    std::fs::remove_file(filler).unwrap();
    until(200).await;
    client::raw(service.address, &post).await.expect(200);
}

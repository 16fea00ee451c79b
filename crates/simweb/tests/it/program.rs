//! The programs `simweb` and `simweb-judge` as a harness runs them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use fetchwell_simweb::{HitKind, SimRequest, SiteScript, World, read_hits, write_hits};

#[test]
#[expect(clippy::disallowed_methods, reason = "this client tests the program from outside")]
fn the_program_serves_a_file_of_scripts_and_leaves_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world.json");
    let record = folder.path().join("hits.jsonl");
    let scripts = [SiteScript::new("shop.test").status("/gone", 410)];
    std::fs::write(&world, serde_json::to_vec(&scripts).unwrap()).unwrap();

    let mut program = Command::new(env!("CARGO_BIN_EXE_simweb"))
        .args(["--listen", "127.0.0.1:0"])
        .args([&"--world".into(), &world, &"--record".into(), &record])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening ").unwrap().to_owned();

    let mut stream = TcpStream::connect(addr).unwrap();
    let request = b"GET /gone HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).unwrap();
    assert!(received.starts_with("HTTP/1.1 410 "), "{received}");

    let terminated = Command::new("kill").arg(program.id().to_string()).status().unwrap();
    assert!(terminated.success());
    assert!(program.wait().unwrap().success());

    let hits = read_hits(BufReader::new(std::fs::File::open(&record).unwrap())).unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!((&*hits[0].path, hits[0].status), ("/gone", Some(410)));
    assert_eq!(hits[0].kind, HitKind::Page);
    let written_at = std::fs::metadata(&record).unwrap().modified().unwrap();
    let written_at = written_at.duration_since(std::time::UNIX_EPOCH).unwrap();
    let age = written_at.abs_diff(hits[0].at);
    assert!(age < Duration::from_secs(300), "{age:?}");
}

#[test]
fn the_judge_counts_what_is_in_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("hits.jsonl");
    let world = World::new([SiteScript::new("shop.test").status("/gone", 410)]);
    for (at_ms, host, path) in [
        (0, "shop.test", "/robots.txt"),
        (1, "shop.test", "/a"),
        (95, "shop.test", "/b"),
        (150, "shop.test", "/b"),
        (300, "shop.test", "/gone"),
        (2_000, "other.test", "/"),
    ] {
        world.answer(Duration::from_millis(at_ms), SimRequest::get(host, path));
    }
    write_hits(&mut std::fs::File::create(&record).unwrap(), &world.hits()).unwrap();

    let judged = Command::new(env!("CARGO_BIN_EXE_simweb-judge"))
        .args(["--interval-ms=100", "--tolerance-ms=10"])
        .arg(&record)
        .output()
        .unwrap();
    assert!(judged.status.success(), "{judged:?}");
    let report: serde_json::Value = serde_json::from_slice(&judged.stdout).unwrap();
    let expected = serde_json::json!({
        "pages": 3, "distinct_pages": 2, "robots": 1, "others": 2, "sites": 2,
        "lasted_s": 2.0, "gaps_judged": 3, "too_soon": 1,
    });
    assert_eq!(report, expected);
}

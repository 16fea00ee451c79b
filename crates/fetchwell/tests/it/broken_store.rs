//! The built program on a store with an error that no retry can fix: it prints the error and exits.

use std::time::Duration;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::Program;
use rusqlite::Connection;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_whose_table_was_dropped_ends_and_says_so() {
    for (arguments, started) in [
        (&["serve", "--listen", "127.0.0.1:0"][..], "listening on http://"),
        (&["pages", "--metrics-listen", ""][..], "taking URLs from"),
    ] {
        let program = program();
        let mut process = program.start(arguments);
        process.until_said(started, |said| said.contains(started).then_some(())).await;
        let file = Connection::open(program.file("fetchwell.db")).unwrap();
        file.busy_timeout(Duration::from_secs(20)).unwrap();
        file.execute_batch("DROP TABLE instance").unwrap();
        let ended = process.wait(DEADLINE).await.expect_code(2);
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.contains("this store cannot be used"), "{}", ended.stderr);
        assert!(
            last.contains("fetchwell.db") && last.contains("no such table: instance"),
            "{last}"
        );
        assert!(last.contains("restore a backup"), "{last}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_store_is_an_error_of_the_command_line() {
    let program = program();
    std::fs::write(program.file("fetchwell.db"), "This is no SQLite file.\n".repeat(99)).unwrap();
    let ended = program.run(&["callers", "list"]).await.expect_code(2);
    assert!(ended.stderr.contains("it is not an SQLite file"), "{}", ended.stderr);
}

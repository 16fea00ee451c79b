//! WARC records of our own making, sound and not.

use fetchwell_archive::warc::{MAX_DECLARED_BYTES, RecordKind, WarcFault, parse_record};
use fetchwell_archive::{cdxj, cluster_idx, gzip};
use proptest::prelude::*;

fn record(payload: &str) -> String {
    let length = payload.len();
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <https://a.test/>\r\n\
         content-length: {length}\r\n\r\n{payload}\r\n\r\n"
    )
}

#[test]
fn a_record_is_parsed() {
    let source = record("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>\r\n\r\nbody");
    let got = parse_record(source.as_bytes()).unwrap();
    assert_eq!(got.version, "1.0");
    assert_eq!(got.kind(), Some(RecordKind::Response));
    assert_eq!(got.target_uri().as_deref(), Some("https://a.test/"));
    let http = got.http().unwrap();
    assert_eq!((http.status(), http.raw_body), (Some(200), b"<p>\r\n\r\nbody".as_slice()));
    assert_eq!(http.headers.get("content-type").as_deref(), Some("text/html"));
}

#[test]
fn faults_are_named() {
    let head = "WARC/1.0\r\nContent-Length: ";
    for (source, want) in [
        (String::new(), WarcFault::Version),
        ("HTTP/1.1 200\r\n\r\n".into(), WarcFault::Version),
        ("WARC/x\r\nContent-Length: 0\r\n\r\n".into(), WarcFault::Version),
        ("WARC/1.0\r\nContent-Length: 0\r\n".into(), WarcFault::HeadCutOff),
        (format!("WARC/1.0\r\n{}", "a: b\r\n".repeat(20_000)), WarcFault::HeadTooLong),
        ("WARC/1.0\r\n\r\n".into(), WarcFault::ContentLength),
        (format!("{head}-1\r\n\r\n"), WarcFault::ContentLength),
        (format!("{head}99999999999999999999\r\n\r\n"), WarcFault::ContentLength),
        (format!("{head}{}\r\n\r\n", MAX_DECLARED_BYTES + 1), WarcFault::ContentLength),
        (format!("{head}1\r\nContent-Length: 2\r\n\r\nab"), WarcFault::ContentLength),
        (
            format!("{head}5\r\n\r\nabc"),
            WarcFault::Truncated { declared_bytes: 5, present_bytes: 3 },
        ),
    ] {
        assert_eq!(parse_record(source.as_bytes()), Err(want), "{:.60}", source);
    }
}

#[test]
fn no_cut_of_a_record_is_taken_for_whole() {
    let source = record("HTTP/1.1 200 OK\r\n\r\nbody");
    let whole = source.len() - "\r\n\r\n".len();
    for end in 0..whole {
        assert!(parse_record(&source.as_bytes()[..end]).is_err(), "{end}");
    }
    assert!(parse_record(&source.as_bytes()[..whole]).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_a_record_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for source in [bytes.clone(), [b"WARC/1.0\r\nContent-Length: 3\r\n".as_slice(), &bytes].concat()] {
            if let Ok(record) = parse_record(&source) {
                prop_assert!(source.windows(record.block.len().max(1)).any(|w| w == record.block || record.block.is_empty()));
            }
        }
        let http = [b"HTTP/1.1 200\r\n".as_slice(), &bytes].concat();
        let source = [format!("WARC/1.0\nContent-Length: {}\n\n", http.len()).as_bytes(), &http].concat();
        if let Ok(record) = parse_record(&source) && let Ok(response) = record.http() {
            prop_assert!(http.ends_with(response.raw_body));
        }
        if let Ok(inflated) = gzip::inflate_member(&bytes, 100) {
            prop_assert!(inflated.len() <= 100);
        }
    }

    #[test]
    fn any_line_is_an_entry_or_a_fault(line in "\\PC*", json in "\\{(\"\\PC{0,5}\":\\PC{0,5},?)*\\}") {
        for line in [line.clone(), format!("{line} 20240712000102 {json}")] {
            if let Ok(record) = cdxj::parse_line(&line) {
                prop_assert!(record.length().is_none_or(|length| length <= cdxj::MAX_RECORD_BYTES));
            }
        }
        for line in [line.clone(), format!("a 20240712000102\tx\t1\t{line}")] {
            if let Ok(entry) = cluster_idx::parse_line(&line) {
                prop_assert!(entry.length <= cluster_idx::MAX_BLOCK_BYTES);
            }
        }
    }
}

//! Records that we write, read back.

use fetchwell_archive::gzip::next_member;
use fetchwell_archive::message::{self, MessageBlock};
use fetchwell_archive::warc::{Record, RecordKind, parse_record};
use fetchwell_archive::warc_writer::{Block, NewRecord, RecordId};
use proptest::prelude::*;

const DATE: &str = "2026-11-15T12:00:00.5Z";

/// The records of a file, each of which must be a member of its own.
fn members(mut file: &[u8]) -> Vec<Vec<u8>> {
    let mut members = Vec::new();
    while let Some(member) = next_member(&mut file, u64::MAX, u64::MAX).unwrap() {
        members.push(member.content);
    }
    members
}

fn written(record: &NewRecord<'_>) -> (Vec<u8>, RecordId) {
    let mut file = Vec::new();
    let id = record.write(&mut file).unwrap();
    let mut members = members(&file);
    assert_eq!(members.len(), 1);
    (members.remove(0), id)
}

fn header(record: &Record<'_>, name: &str) -> Option<String> {
    record.headers.get(name).map(Into::into)
}

fn page(body: &[u8]) -> MessageBlock {
    message::response(200, "OK", [("content-type", b"text/html".as_slice())], body)
}

#[test]
fn a_capture_is_read_back_with_all_that_was_known() {
    let response = page(b"<p>hello");
    let request = message::request("GET", "/", []);
    let about_response = NewRecord {
        target_uri: Some("https://a.test/"),
        ip: Some("::1".parse().unwrap()),
        protocol: Some("h2"),
        is_cut: true,
        ..NewRecord::new(
            RecordKind::Response,
            DATE,
            "application/http; msgtype=response",
            Block::Http(&response),
        )
    };
    let mut file = Vec::new();
    let response_id = about_response.write(&mut file).unwrap();
    let about_request = NewRecord {
        concurrent_to: Some(&response_id),
        ..NewRecord::new(
            RecordKind::Request,
            DATE,
            "application/http; msgtype=request",
            Block::Http(&request),
        )
    };
    about_request.write(&mut file).unwrap();

    let members = members(&file);
    let records: Vec<_> = members.iter().map(|member| parse_record(member).unwrap()).collect();
    assert_eq!(records.len(), 2);
    let got = &records[0];
    let asked = &records[1];
    assert_eq!((got.version, got.kind()), ("1.1", Some(RecordKind::Response)));
    assert_eq!(got.target_uri().as_deref(), Some("https://a.test/"));
    for (name, value) in [
        ("WARC-Date", DATE),
        ("WARC-IP-Address", "::1"),
        ("WARC-Protocol", "h2"),
        ("WARC-Truncated", "length"),
        ("WARC-Record-ID", &response_id.to_string()),
        ("Content-Type", "application/http; msgtype=response"),
        // sha1sum of "<p>hello", by another program.
        ("WARC-Payload-Digest", "sha1:6VMT7HTE2K745SIQUUYG3CKPEJVFD5GH"),
    ] {
        assert_eq!(header(got, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(got.http().unwrap().raw_body, b"<p>hello");
    assert_eq!(asked.kind(), Some(RecordKind::Request));
    assert_eq!(header(asked, "WARC-Concurrent-To"), Some(response_id.to_string()));
    assert_eq!(header(asked, "WARC-Payload-Digest"), None);
    assert_eq!(asked.block, request.bytes);
}

#[test]
fn names_differ_unless_everything_is_the_same() {
    let one = page(b"one");
    let other = page(b"other");
    let named = |date, message| {
        written(&NewRecord::new(RecordKind::Response, date, "x/y", Block::Http(message))).1
    };
    assert_eq!(named(DATE, &one), named(DATE, &one));
    assert_ne!(named(DATE, &one), named(DATE, &other));
    assert_ne!(named(DATE, &one), named("2026-11-15T12:00:00.6Z", &one));
    let id = named(DATE, &one).to_string();
    let digits = id.strip_prefix("<urn:uuid:").and_then(|id| id.strip_suffix('>')).unwrap();
    let lengths: Vec<usize> = digits.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
    assert!(digits[14..].starts_with('5') && "89ab".contains(&digits[19..20]), "{id}");
}

#[test]
fn no_value_becomes_a_header_of_its_own() {
    let record = NewRecord {
        target_uri: Some("http://a.test/\r\nWARC-Type: warcinfo\r\n\r\n"),
        ..NewRecord::new(RecordKind::Metadata, DATE, "application/json", Block::Bytes(b"{}"))
    };
    let (bytes, _) = written(&record);
    let got = parse_record(&bytes).unwrap();
    assert_eq!((got.headers.all("WARC-Type").count(), got.block), (1, b"{}".as_slice()));
}

proptest! {
    #[test]
    fn whatever_was_captured_is_what_is_read(
        body in prop::collection::vec(any::<u8>(), 0..3_000),
        value in prop::collection::vec(prop_oneof![0x20_u8..0x7f, 0x80_u8..], 0..40),
        status in 100_u16..600,
        encoded in any::<bool>(),
    ) {
        let encoding = encoded.then_some(("content-encoding", b"gzip".as_slice()));
        let headers = [("content-length", b"7".as_slice()), ("x-any", &value)];
        let message = message::response(status, "", headers.into_iter().chain(encoding), &body);
        let record = NewRecord::new(RecordKind::Response, DATE, "x/y", Block::Http(&message));
        let (bytes, _) = written(&record);
        let got = parse_record(&bytes).unwrap();
        prop_assert_eq!(got.block, &message.bytes);
        let http = got.http().unwrap();
        prop_assert_eq!((http.status(), http.raw_body), (Some(status), body.as_slice()));
        let mut scratch = Vec::new();
        prop_assert_eq!(http.body(&mut scratch, usize::MAX).bytes, &body);
        let length = body.len().to_string();
        prop_assert_eq!(http.headers.all("content-length").collect::<Vec<_>>(), [length.as_str()]);
        prop_assert_eq!(http.headers.get("content-encoding"), None);
        let kept = http.headers.get("x-crawler-content-encoding");
        prop_assert_eq!(kept.as_deref(), encoding.map(|_| "gzip"));
    }
}

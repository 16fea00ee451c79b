//! Requests and responses as WARC records.
//!
//! The records of a URL are contiguous: a `response` and its `request` for each redirect and for the last response,
//! then one `metadata` record with the row that `--format json` would print. Every URL has a `metadata` record, even if
//! the site did not respond; since it comes last, it shows that the others are complete.

use std::path::Path;

use bytes::Bytes;
use fetchwell_archive::message;
use fetchwell_archive::warc::RecordKind;
use fetchwell_archive::warc_writer::{Block, NewRecord, RecordId};
use fetchwell_engine::web::{Answer, Outcome, Wire};
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use http::header::HOST;
use http::{HeaderMap, StatusCode, Version};

/// The program's name in the `warcinfo` record; a resumed run looks for it.
pub(super) const SOFTWARE: &str = concat!("software: Fetchwell/", env!("CARGO_PKG_VERSION"));

/// The byte budget covers the final page, but not the redirects before it: a longer body of a redirect is truncated.
const MAX_REDIRECT_BODY_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Capture {
    url: WebUrl,
    began: Time,
    wire: Wire,
    status: u16,
    headers: HeaderMap,
    body: Bytes,
    is_cut: bool,
}

impl Capture {
    /// `None` if there was no response.
    pub(super) fn of(url: &WebUrl, outcome: &Outcome, now: Time) -> Option<Capture> {
        let answer = outcome.answer.as_ref()?;
        let (body, is_cut) = kept_body(answer);
        Some(Capture {
            url: url.clone(),
            began: now - outcome.phases.first_byte - outcome.phases.body,
            wire: (*answer.wire).clone(),
            status: answer.status,
            headers: answer.headers.clone(),
            body,
            is_cut,
        })
    }

    /// Writes the response and its request, and returns the record ID of the response.
    fn write(&self, members: &mut Vec<u8>) -> Option<RecordId> {
        let reason = StatusCode::from_u16(self.status).ok().and_then(|s| s.canonical_reason());
        let reason = reason.unwrap_or_default();
        let response = message::response(self.status, reason, pairs(&self.headers), &self.body);
        let site = self.url.site();
        // HTTP/2 has no Host header: it sends `:authority` instead.
        let host =
            (!self.wire.request_headers.contains_key(HOST)).then_some(("host", site.as_str()));
        let host = host.into_iter().map(|(name, host)| (name, host.as_bytes()));
        let headers = host.chain(pairs(&self.wire.request_headers));
        let request = message::request("GET", self.url.path_and_query(), headers);
        let date = rfc3339(self.began);
        let answered = NewRecord {
            target_uri: Some(self.url.as_str()),
            ip: self.wire.peer,
            protocol: (self.wire.version == Version::HTTP_2).then_some("h2"),
            is_cut: self.is_cut,
            ..NewRecord::new(RecordKind::Response, &date, RESPONSE, Block::Http(&response))
        };
        let answer = written(&answered, members);
        let asked = NewRecord {
            kind: RecordKind::Request,
            concurrent_to: answer.as_ref(),
            content_type: REQUEST,
            is_cut: false,
            block: Block::Http(&request),
            ..answered
        };
        written(&asked, members);
        answer
    }
}

const RESPONSE: &str = "application/http; msgtype=response";
const REQUEST: &str = "application/http; msgtype=request";

/// The exchanges of a URL as gzip members.
#[derive(Debug, Default)]
pub struct Archived {
    members: Vec<u8>,
    last_answer: Option<RecordId>,
}

impl Archived {
    pub(super) fn of(captures: &[Capture]) -> Archived {
        let mut archived = Archived::default();
        for capture in captures {
            archived.last_answer = capture.write(&mut archived.members);
        }
        archived
    }

    pub(super) fn bytes(&self) -> usize {
        self.members.len()
    }

    /// The members, followed by a record with the row.
    pub fn with_row(&self, url: &str, date: &str, json: &[u8]) -> Vec<u8> {
        // The row holds the URL as given, which may be an invalid URI.
        let target = WebUrl::parse(url).ok();
        let record = NewRecord {
            target_uri: target.as_ref().map(WebUrl::as_str),
            concurrent_to: self.last_answer.as_ref(),
            ..NewRecord::new(RecordKind::Metadata, date, "application/json", Block::Bytes(json))
        };
        let mut members = self.members.clone();
        written(&record, &mut members);
        members
    }
}

/// The first record of a file.
pub(super) fn warcinfo(path: &Path, user_agent: &str, now: Time) -> Vec<u8> {
    let fields = format!(
        "{SOFTWARE}\r\nformat: WARC File Format 1.1\r\n\
         conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
         robots: classic\r\nhttp-header-user-agent: {user_agent}\r\n"
    );
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let date = rfc3339(now);
    let block = Block::Bytes(fields.as_bytes());
    let record = NewRecord {
        filename: Some(&name),
        ..NewRecord::new(RecordKind::Warcinfo, &date, "application/warc-fields", block)
    };
    let mut members = Vec::new();
    written(&record, &mut members);
    members
}

fn kept_body(answer: &Answer) -> (Bytes, bool) {
    let is_too_long = answer.redirect().is_some() && answer.body.len() > MAX_REDIRECT_BODY_BYTES;
    if is_too_long {
        // A copy, so that the rest of the body is freed.
        (Bytes::copy_from_slice(&answer.body[..MAX_REDIRECT_BODY_BYTES]), true)
    } else {
        (answer.body.clone(), false)
    }
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

/// Writing to memory cannot fail, so there is always an ID.
fn written(record: &NewRecord<'_>, members: &mut Vec<u8>) -> Option<RecordId> {
    record.write(members).ok()
}

#[cfg(test)]
mod tests {
    use fetchwell_archive::gzip::next_member;
    use fetchwell_archive::warc::parse_record;
    use fetchwell_policy::outcome::FetchOutcome;
    use fetchwell_testkit::samples::{NOW, outcome};

    use super::*;

    /// The header of the first record of what comes of an answer with this status and body.
    fn header(status: u16, body: &str, change: fn(&mut Answer), name: &str) -> Option<String> {
        let url = WebUrl::parse("https://a.test/").unwrap();
        let mut outcome = outcome(FetchOutcome::Answered(status), body);
        outcome.answer.iter_mut().for_each(change);
        let capture = Capture::of(&url, &outcome, NOW).unwrap();
        let archived = Archived::of(&[capture]);
        let member = next_member(&mut &archived.members[..], u64::MAX, u64::MAX).unwrap().unwrap();
        let record = parse_record(&member.content).unwrap();
        record.headers.get(name).map(Into::into)
    }

    #[test]
    fn a_long_redirect_is_cut_and_says_so_and_a_page_never_is() {
        let leads_on = |answer: &mut Answer| {
            answer.headers.insert("location", "/on".parse().unwrap());
        };
        let long = "x".repeat(MAX_REDIRECT_BODY_BYTES + 1);
        let cut = Some("length".to_owned());
        assert_eq!(header(302, &long, leads_on, "WARC-Truncated"), cut);
        assert_eq!(header(302, &long[1..], leads_on, "WARC-Truncated"), None);
        assert_eq!(header(200, &long, |_| {}, "WARC-Truncated"), None);
    }

    #[test]
    fn what_is_not_on_the_status_line_is_told_beside_it() {
        let by_two = |answer: &mut Answer| {
            answer.wire.version = Version::HTTP_2;
            answer.wire.peer = Some("192.0.2.1".parse().unwrap());
        };
        assert_eq!(header(200, "", by_two, "WARC-Protocol").as_deref(), Some("h2"));
        assert_eq!(header(200, "", by_two, "WARC-IP-Address").as_deref(), Some("192.0.2.1"));
        assert_eq!(header(200, "", |_| {}, "WARC-Protocol"), None);
        // The capture began a millisecond before the answer was there.
        let began = header(200, "", |_| {}, "WARC-Date");
        assert_eq!(began, Some(rfc3339(NOW - std::time::Duration::from_millis(1))));
    }
}

//! Unusual and invalid status lines, and unexpected statuses.

use fetchwell_engine::web::Method;
use fetchwell_policy::outcome::AnswerFault::NotHttp;

use super::super::behaviour::{Behaviour, Good};
use super::super::step::HostileStep;
use super::{HELLO, answer, hello};

pub(super) fn behaviours() -> Vec<Behaviour> {
    [no_http(), odd_lines(), odd_statuses()].concat()
}

fn no_http() -> Vec<Behaviour> {
    [
        ("ssh-banner", "an SSH server", "SSH-2.0-OpenSSH_9.2\r\n"),
        ("smtp-banner", "a mail server", "220 mail.test ESMTP ready\r\n"),
        ("shoutcast", "ICY instead of HTTP", "ICY 200 OK\r\n\r\nhello"),
        ("http-0-9", "a page without a head", "<html>hello</html>\r\n"),
        ("http-9-9", "a version from the future", "HTTP/9.9 200 OK\r\n\r\nhello"),
        ("garbage-status-line", "no number for a status", "HTTP/1.1 abc def\r\n\r\n"),
        ("status-99", "a status of two digits", "HTTP/1.1 99 Low\r\n\r\nhello"),
        ("status-000", "a status of zero", "HTTP/1.1 000 None\r\n\r\nhello"),
        ("status-1000", "a status of four digits", "HTTP/1.1 1000 High\r\n\r\nhello"),
        ("binary-garbage", "bytes of no protocol", "\u{1}\u{2}\u{0}\u{0}\u{7f}\r\n\r\n"),
    ]
    .map(|(name, does, says)| Behaviour::says(name, does, says).bad(NotHttp))
    .into()
}

/// Browsers accept all of this as HTTP.
fn odd_lines() -> Vec<Behaviour> {
    let length = "content-length: 5\r\n\r\nhello";
    [
        ("no-reason", "a status line without a reason", format!("HTTP/1.1 200\r\n{length}")),
        ("high-reason", "a reason that is not ASCII", format!("HTTP/1.1 200 Ökay\r\n{length}")),
        (
            "leading-blank-lines",
            "blank lines first",
            format!("\r\n\r\nHTTP/1.1 200 OK\r\n{length}"),
        ),
        ("http-1-0", "an old version, no length", "HTTP/1.0 200 OK\r\n\r\nhello".to_owned()),
        ("bare-lf", "lines that end in LF", "HTTP/1.1 200 OK\ncontent-length: 5\n\nhello".into()),
    ]
    .map(|(name, does, says)| Behaviour::says(name, does, says).page(HELLO))
    .into()
}

fn odd_statuses() -> Vec<Behaviour> {
    let says = |name, does, status| Behaviour::says(name, does, answer(status, "", HELLO));
    let continues = b"HTTP/1.1 100 Continue\r\n\r\n";
    let hints = [&b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"[..], &hello("")].concat();
    let endless = vec![HostileStep::Read, HostileStep::Flood(continues.into())];
    vec![
        says("status-999", "a status that some sites use to say no", "999 Denied").status(999),
        says("status-600", "a status beyond the classes", "600 What").status(600),
        says("unauthorized", "a password is asked for", "401 Unauthorized").status(401),
        says("proxy-authentication", "a proxy's 407", "407 Proxy Auth").status(407),
        says("partial-unasked", "a part that nobody asked for", "206 Partial").status(206),
        says("no-content-with-body", "204 with a body", "204 No Content").status(204),
        says("not-modified-with-body", "304 with a body", "304 Not Modified").status(304),
        says("switching-unasked", "101 that nobody asked for", "101 Switching").status(101),
        says("head-with-body", "a body in answer to HEAD", "200 OK")
            .asked_by(Method::HEAD)
            .good([Good::Page(b""), Good::Page(HELLO)]),
        Behaviour::says("early-hints", "103, then the page", hints).page(HELLO),
        Behaviour::new("endless-continue", "100 Continue without end", endless).bad(NotHttp),
    ]
}

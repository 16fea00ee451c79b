//! All behaviours, grouped by what is wrong.

mod connections;
mod encodings;
mod framing;
mod heads;
mod http2;
mod redirects;
mod slowness;
mod statuses;
mod tls;

use super::behaviour::Behaviour;

/// The page that a good client gets, if it can get one.
const HELLO: &[u8] = b"hello";

/// Every behaviour.
pub fn behaviours() -> Vec<Behaviour> {
    [
        statuses::behaviours(),
        heads::behaviours(),
        framing::behaviours(),
        encodings::behaviours(),
        redirects::behaviours(),
        slowness::behaviours(),
        connections::behaviours(),
        tls::behaviours(),
        http2::behaviours(),
    ]
    .concat()
}

/// A complete response with a length and these headers, each of which ends in CRLF.
fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// The page, with these headers.
fn hello(headers: &str) -> Vec<u8> {
    answer("200 OK", headers, HELLO)
}

/// The head of a chunked body, and the beginning of that body.
fn chunked(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_fit_for_hosts_and_each_has_an_outcome() {
        let mut names = HashSet::new();
        for behaviour in behaviours() {
            let name = behaviour.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.len() <= 63, "{name} is too long for a host");
            let fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(name.bytes().all(fit), "{name} is not fit for a host");
            assert!(!behaviour.good.is_empty() && !behaviour.does.is_empty(), "{name}");
        }
        assert!(names.len() >= 60, "only {} behaviours", names.len());
    }
}

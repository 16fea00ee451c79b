//! Settings that name servers, lists and topics.

use super::fault::{Wrong, quoted};
use super::kinds::{Parsed, displayed};

/// Kafka bootstrap servers, each as HOST:PORT, separated by commas.
pub(super) const SERVERS: Parsed<String> = displayed(|text| {
    let is_server = |server: &str| {
        server.trim().rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains(['/', ' ', '@']) && port.parse::<u16>().is_ok()
        })
    };
    if !text.split(',').all(is_server) {
        return Err(Wrong::new(
            format!("{} is not a list of servers", quoted(text)),
            r#"write HOST:PORT, with commas between several: "kafka-1:9092,kafka-2:9092""#,
        ));
    }
    Ok(text.split(',').map(str::trim).collect::<Vec<_>>().join(","))
});

/// The name of a list in Redis.
pub(super) const LIST_NAME: Parsed<String> = displayed(|text| {
    const MOST_BYTES: usize = 256;
    if text.is_empty() || text.len() > MOST_BYTES || text.contains(char::is_control) {
        return Err(Wrong::new(
            format!("{} is not a valid list name", quoted(text)),
            format!("write 1 to {MOST_BYTES} bytes without control characters"),
        ));
    }
    Ok(text.to_owned())
});

/// A valid name of a Kafka topic.
pub(super) const TOPIC_NAME: Parsed<String> = displayed(|text| {
    const MOST_BYTES: usize = 249;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let in_bounds = (1..=MOST_BYTES).contains(&text.len());
    if !in_bounds || !text.bytes().all(allowed) || matches!(text, "." | "..") {
        return Err(Wrong::new(
            format!("{} is not a valid topic name", quoted(text)),
            format!("write 1 to {MOST_BYTES} characters from a-z, A-Z, 0-9, '.', '_' and '-'"),
        ));
    }
    Ok(text.to_owned())
});

#[cfg(test)]
mod tests {
    use super::super::kinds::Kind;
    use super::super::layer::Raw;
    use super::*;

    fn read(kind: &Parsed<String>, text: &str) -> Option<String> {
        kind.read(&Raw::One(text.to_owned())).ok()
    }

    #[test]
    fn servers_are_hosts_with_ports() {
        let good = read(&SERVERS, "a:9092, [::1]:1,b.test:2");
        assert_eq!(good.as_deref(), Some("a:9092,[::1]:1,b.test:2"));
        for bad in ["", "a", "a:", ":1", "a:1,,b:2", "a:99999", "kafka://a:1", "u@a:1"] {
            assert_eq!(read(&SERVERS, bad), None, "{bad}");
        }
    }

    #[test]
    fn names_are_what_their_servers_take() {
        assert!(read(&LIST_NAME, "crawler queue:{1}").is_some());
        assert!(read(&TOPIC_NAME, "webpage_log.v1-a").is_some());
        for bad in ["", "a\nb"] {
            assert_eq!((read(&LIST_NAME, bad), read(&TOPIC_NAME, bad)), (None, None), "{bad}");
        }
        for bad in ["a b", "a/b", "..", &"x".repeat(250)] {
            assert_eq!(read(&TOPIC_NAME, bad), None, "{bad}");
        }
    }
}

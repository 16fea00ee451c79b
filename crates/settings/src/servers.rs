//! Settings that name servers, lists and topics.

use serde_json::Value as Json;

use super::fault::{Wrong, quoted};
use super::features::Feature;
use super::kinds::Kind;
use super::layer::Raw;

/// Kafka bootstrap servers, each as HOST:PORT, separated by commas.
pub(super) struct Servers(pub(super) Feature);

impl Kind for Servers {
    type Value = String;

    fn read(&self, raw: &Raw) -> Result<String, Wrong> {
        let text = raw.one()?;
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
        self.0.require()?;
        Ok(text.split(',').map(str::trim).collect::<Vec<_>>().join(","))
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }
}

/// The name of a list in Redis.
pub(super) struct ListName;

impl Kind for ListName {
    type Value = String;

    fn read(&self, raw: &Raw) -> Result<String, Wrong> {
        const MOST_BYTES: usize = 256;
        let text = raw.one()?;
        if text.is_empty() || text.len() > MOST_BYTES || text.contains(char::is_control) {
            return Err(Wrong::new(
                format!("{} is not a valid list name", quoted(text)),
                format!("write 1 to {MOST_BYTES} bytes without control characters"),
            ));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }
}

/// A valid name of a Kafka topic.
pub(super) struct TopicName;

impl Kind for TopicName {
    type Value = String;

    fn read(&self, raw: &Raw) -> Result<String, Wrong> {
        const MOST_BYTES: usize = 249;
        let text = raw.one()?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let in_bounds = (1..=MOST_BYTES).contains(&text.len());
        if !in_bounds || !text.bytes().all(allowed) || matches!(text, "." | "..") {
            return Err(Wrong::new(
                format!("{} is not a valid topic name", quoted(text)),
                format!("write 1 to {MOST_BYTES} characters from a-z, A-Z, 0-9, '.', '_' and '-'"),
            ));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::KAFKA;
    use super::*;

    fn read<K: Kind<Value = String>>(kind: &K, text: &str) -> Option<String> {
        kind.read(&Raw::One(text.to_owned())).ok()
    }

    #[test]
    fn servers_are_hosts_with_ports() {
        let good = read(&Servers(KAFKA), "a:9092, [::1]:1,b.test:2");
        assert_eq!(good.as_deref(), Some("a:9092,[::1]:1,b.test:2"));
        for bad in ["", "a", "a:", ":1", "a:1,,b:2", "a:99999", "kafka://a:1", "u@a:1"] {
            assert_eq!(read(&Servers(KAFKA), bad), None, "{bad}");
        }
    }

    #[test]
    fn names_are_what_their_servers_take() {
        assert!(read(&ListName, "crawler queue:{1}").is_some());
        assert!(read(&TopicName, "webpage_log.v1-a").is_some());
        for bad in ["", "a\nb"] {
            assert_eq!((read(&ListName, bad), read(&TopicName, bad)), (None, None), "{bad}");
        }
        for bad in ["a b", "a/b", "..", &"x".repeat(250)] {
            assert_eq!(read(&TopicName, bad), None, "{bad}");
        }
    }
}

//! The properties of a message: its id, its history, and when it is due.

use std::time::Duration;

use fetchwell_engine::ports::batches::Batch;
use fetchwell_policy::digest::sha256_hex;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

/// The number of failures of the batch itself.
pub const ATTEMPTS_HEADER: &str = "fetchwell-attempts";
/// The reason of a dead letter.
pub const REASON_HEADER: &str = "fetchwell-reason";
/// How often it failed because the archive was unreachable, and how often it was sent too early.
const SITE_FAILURES_HEADER: &str = "fetchwell-site-failures";
const PACED_HEADER: &str = "fetchwell-paced";
/// Do not try before this time, in Unix milliseconds.
const NOT_BEFORE_HEADER: &str = "fetchwell-not-before";

const OWN_HEADERS: [&str; 5] =
    [ATTEMPTS_HEADER, REASON_HEADER, SITE_FAILURES_HEADER, PACED_HEADER, NOT_BEFORE_HEADER];

/// The AMQP delivery mode for messages that a durable queue writes to disk.
const PERSISTENT: u8 = 2;
/// Limits the wait for a time that another machine's clock has set, because clocks differ.
const MAX_DELAY: Duration = Duration::from_secs(3_600);

/// A message to publish.
pub(super) struct Outgoing<'a> {
    pub(super) queue: &'a ShortString,
    pub(super) body: &'a [u8],
    pub(super) properties: BasicProperties,
}

/// The properties of a batch that is published for the first time.
pub(super) fn first(batch: &Batch) -> BasicProperties {
    let properties = lasting(BasicProperties::default());
    match ShortString::try_new(batch.id.clone()) {
        Ok(id) => properties.with_message_id(id),
        Err(_) => properties,
    }
}

/// The properties of a batch for another attempt, with its history.
pub(super) fn again(
    before: &BasicProperties,
    history: &History,
    not_before: Time,
) -> BasicProperties {
    let mut headers = before.headers().clone().unwrap_or_default();
    put_history(&mut headers, history);
    let at_ms = not_before.as_micros() / 1_000;
    headers.insert(NOT_BEFORE_HEADER.into(), AMQPValue::LongLongInt(at_ms));
    lasting(before.clone()).with_headers(headers)
}

/// The properties of a dead batch that is to be tried again with its history reset: our headers are removed.
pub(super) fn fresh(before: &BasicProperties) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in before.headers().iter().flatten() {
        if !OWN_HEADERS.contains(&name.as_str()) {
            headers.insert(name.clone(), value.clone());
        }
    }
    lasting(before.clone()).with_headers(headers)
}

/// The properties of a batch that is given up, with the reason.
pub(super) fn dead(before: &BasicProperties, reason: &str) -> BasicProperties {
    let mut headers = before.headers().clone().unwrap_or_default();
    headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
    lasting(before.clone()).with_headers(headers)
}

/// The properties of a message that a durable queue writes to disk.
pub(super) fn lasting(properties: BasicProperties) -> BasicProperties {
    properties.with_content_type("application/json".into()).with_delivery_mode(PERSISTENT)
}

fn put_history(headers: &mut FieldTable, history: &History) {
    let counts = [
        (ATTEMPTS_HEADER, history.url_failures),
        (SITE_FAILURES_HEADER, history.site_failures),
        (PACED_HEADER, history.paced),
    ];
    for (name, count) in counts {
        headers.insert(name.into(), AMQPValue::LongLongInt(count.into()));
    }
}

/// The history of a batch. The time of the first failure of its archive came from another machine's clock, so it counts
/// from now.
pub(super) fn history_of(properties: &BasicProperties, now: Time) -> History {
    let count = |name| number(properties, name).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let site_failures = count(SITE_FAILURES_HEADER);
    History {
        url_failures: count(ATTEMPTS_HEADER),
        site_failures,
        paced: count(PACED_HEADER),
        first_site_failure: (site_failures > 0).then_some(now),
    }
}

/// How long it still has to wait, by the wall clock.
pub(super) fn delay_of(properties: &BasicProperties, wall: Time) -> Duration {
    let at_ms = number(properties, NOT_BEFORE_HEADER).unwrap_or(0);
    let at = Time::from_micros(at_ms.saturating_mul(1_000));
    at.since(wall).min(MAX_DELAY)
}

/// The id of a batch. If its publisher did not set one, this is the id that our own batches have: the SHA-256 of the
/// body.
pub(super) fn name_of(properties: &BasicProperties, body: &[u8]) -> String {
    let id = properties.message_id().as_ref().map(ToString::to_string);
    id.filter(|id| !id.is_empty()).unwrap_or_else(|| sha256_hex(body))
}

/// The reason of a dead letter; empty if it has none.
pub(super) fn reason_of(properties: &BasicProperties) -> String {
    let headers = properties.headers().as_ref();
    match headers.and_then(|headers| headers.inner().get(REASON_HEADER)) {
        Some(AMQPValue::LongString(reason)) => reason.to_string(),
        Some(AMQPValue::ShortString(reason)) => reason.to_string(),
        _ => String::new(),
    }
}

/// Other clients encode integers in various sizes.
fn number(properties: &BasicProperties, name: &str) -> Option<i64> {
    let headers = properties.headers().as_ref()?;
    match headers.inner().get(name)? {
        AMQPValue::LongLongInt(n) => Some(*n),
        AMQPValue::LongInt(n) => Some((*n).into()),
        AMQPValue::ShortInt(n) => Some((*n).into()),
        AMQPValue::ShortShortInt(n) => Some((*n).into()),
        AMQPValue::LongUInt(n) => Some((*n).into()),
        AMQPValue::ShortUInt(n) => Some((*n).into()),
        AMQPValue::ShortShortUInt(n) => Some((*n).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_batch_has_been_through_travels_with_it() {
        let now = Time::from_micros(7_000_000);
        let batch = Batch { id: "b-1".to_owned(), body: bytes::Bytes::from_static(b"[]") };
        let first = first(&batch);
        assert_eq!(history_of(&first, now), History::default());
        assert_eq!(delay_of(&first, now), Duration::ZERO);
        let history =
            History { url_failures: 2, site_failures: 3, paced: 4, first_site_failure: None };
        let due = now + Duration::from_secs(9);
        let again = again(&first, &history, due);
        let first_site_failure = Some(now);
        assert_eq!(history_of(&again, now), History { first_site_failure, ..history });
        assert_eq!(delay_of(&again, now), Duration::from_secs(9));
        assert_eq!(delay_of(&again, Time::from_micros(-1 << 60)), MAX_DELAY);
        assert_eq!(name_of(&again, b"[]"), "b-1");
        assert_eq!(*again.delivery_mode(), Some(PERSISTENT));
    }

    #[test]
    fn a_dead_letter_that_is_tried_again_keeps_its_name_and_nothing_of_its_record() {
        let now = Time::from_micros(7_000_000);
        let batch = Batch { id: "b-1".to_owned(), body: bytes::Bytes::from_static(b"[]") };
        let mut theirs = FieldTable::default();
        theirs.insert("trace".into(), AMQPValue::LongString("abc".into()));
        let first = first(&batch).with_headers(theirs.clone());
        let history = History { url_failures: 2, ..History::default() };
        let again = again(&first, &history, now + MAX_DELAY);
        let dead = dead(&again, "no batch");
        assert_eq!(reason_of(&dead), "no batch");
        let seen = lasting(dead.clone());
        assert_eq!(seen, dead);
        let anew = fresh(&seen);
        assert_eq!(anew.headers().as_ref(), Some(&theirs));
        assert_eq!((name_of(&anew, b"[]"), reason_of(&anew)), ("b-1".into(), "".into()));
        assert_eq!(history_of(&anew, now), History::default());
        assert_eq!(delay_of(&anew, now), Duration::ZERO);
    }

    #[test]
    fn a_batch_without_a_name_is_named_by_its_body() {
        let name = name_of(&BasicProperties::default(), b"abc");
        assert!(name.starts_with("ba7816bf8f01cfea") && name.len() == 64, "{name}");
    }
}

//! Reads the filters of a query.

use fetchwell_engine::ports::oversight::{MESSAGES_PER_PAGE, MessageFilter, MessageState};
use fetchwell_policy::time::Time;
use jiff::Timestamp;

use crate::api::parameters::{self, BadParameter, CURSOR, cursor, limit};
use crate::problem::Problem;

const DEFAULT_LIMIT: u32 = 50;
/// No field of a message is longer than this.
const MAX_TEXT_BYTES: usize = 8_192;

/// A parsed query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) filter: MessageFilter,
    pub(super) after: Option<i64>,
    pub(super) limit: u32,
}

impl Asked {
    pub(super) fn read(query: &str) -> Result<Asked, Problem> {
        let mut asked =
            Asked { filter: MessageFilter::default(), after: None, limit: DEFAULT_LIMIT };
        parameters::read(query, |name, value| asked.set(name, value))?;
        Ok(asked)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BadParameter> {
        let filter = &mut self.filter;
        match name {
            "state" => {
                let state = MessageState::parse(value).ok_or(("state", STATES))?;
                filter.state = Some(state);
            }
            "site" => filter.site = Some(text("site", value)?),
            "retailer" => filter.retailer = Some(text("retailer", value)?),
            "caller" => filter.caller = Some(text("caller", value)?),
            "reason" => filter.reason = Some(text("reason", value)?),
            "url" => filter.url_contains = Some(text("url", value)?),
            "correlation_id" => filter.correlation_id = Some(text("correlation_id", value)?),
            "as_of" => {
                filter.as_of = Some(moment(value).ok_or(("as_of", AS_OF))?);
            }
            "after" => self.after = Some(cursor(value).ok_or(("after", CURSOR))?),
            "limit" => {
                self.limit =
                    limit(value, MESSAGES_PER_PAGE).ok_or(("limit", "must be 1 to 200"))?;
            }
            // Unknown parameters are ignored.
            _ => {}
        }
        Ok(())
    }
}

/// The error for an invalid state.
pub(super) const STATES: &str = "must be queued, processing, delayed, completed or failed";
/// The error for an invalid time.
pub(super) const AS_OF: &str = "must be a time: `as_of` of an earlier response";

/// Parses the `as_of` of an earlier response.
pub(super) fn moment(text: &str) -> Option<Time> {
    let at: Timestamp = text.parse().ok()?;
    Some(Time::from_micros(at.as_microsecond()))
}

fn text(name: &'static str, value: &str) -> Result<String, BadParameter> {
    if value.len() > MAX_TEXT_BYTES || value.contains('\0') {
        return Err((name, "must have at most 8,192 bytes, without NUL"));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_strictly() {
        let asked = Asked::read(
            "state=failed&site=a.test&reason=http_error+404&url=%2Fx&as_of=1970-01-01T00:00:01.5Z&limit=7&after=9",
        )
        .unwrap();
        let expected = MessageFilter {
            state: Some(MessageState::Failed),
            site: Some("a.test".to_owned()),
            reason: Some("http_error 404".to_owned()),
            url_contains: Some("/x".to_owned()),
            as_of: Some(Time::from_micros(1_500_000)),
            ..MessageFilter::default()
        };
        assert_eq!(asked, Asked { filter: expected, after: Some(9), limit: 7 });
        assert_eq!(Asked::read("other=1").unwrap().limit, DEFAULT_LIMIT);
        for wrong in
            ["state=gone", "state=", "limit=0", "limit=201", "after=-1", "as_of=now", "site=%00"]
        {
            assert!(Asked::read(wrong).is_err(), "{wrong}");
        }
    }
}

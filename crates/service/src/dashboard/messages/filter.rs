//! A filter in a URL, in a form and on a command line.

use fetchwell_engine::ports::oversight::{MessageFilter, MessageState};
use fetchwell_policy::rfc3339::rfc3339;
use url::form_urlencoded::Serializer;

use crate::dashboard::access::Form;
use crate::dashboard::fault::PageError;
use crate::dashboard::words::shell;

/// The text fields of a filter: their names in URLs, and the flags of `fetchwell messages`.
const TEXTS: [(&str, &str); 6] = [
    ("site", "--site"),
    ("retailer", "--retailer"),
    ("caller", "--caller"),
    ("reason", "--reason"),
    ("text", "--url"),
    ("correlation_id", "--correlation-id"),
];

/// An invalid state or time is an error: if it were ignored, the filter would match more than requested.
pub(super) fn read(form: &Form) -> Result<MessageFilter, PageError> {
    let text = |name: &str| form.text(name).map(str::to_owned);
    let state = |word| MessageState::parse(word).ok_or(PageError::BadRequest("unknown state"));
    Ok(MessageFilter {
        state: form.text("state").map(state).transpose()?,
        site: text("site"),
        retailer: text("retailer"),
        caller: text("caller"),
        reason: text("reason"),
        url_contains: text("text"),
        correlation_id: text("correlation_id"),
        as_of: form.time("as_of")?,
    })
}

/// The fields that are set, by their names in URLs and forms.
pub(super) fn fields(filter: &MessageFilter) -> Vec<(&'static str, String)> {
    let state = filter.state.map(|state| ("state", state.as_str().to_owned()));
    let texts = values(filter).into_iter().zip(TEXTS);
    let texts = texts.filter_map(|(value, (name, _))| Some((name, value.clone()?)));
    let as_of = filter.as_of.map(|at| ("as_of", at.as_micros().to_string()));
    state.into_iter().chain(texts).chain(as_of).collect()
}

/// The URL of the list with this filter.
pub(super) fn path(filter: &MessageFilter, from: Option<i64>) -> String {
    let mut query = Serializer::new(String::new());
    query.extend_pairs(fields(filter));
    if let Some(from) = from {
        query.append_pair("from", &from.to_string());
    }
    match query.finish() {
        query if query.is_empty() => "/dashboard/messages".to_owned(),
        query => format!("/dashboard/messages?{query}"),
    }
}

/// The command that does the same.
pub(super) fn command(act: &str, filter: &MessageFilter) -> String {
    let mut command = format!("fetchwell messages {act}");
    let mut add = |flag: &str, value: &str| command.push_str(&format!(" {flag} {}", shell(value)));
    if let Some(state) = filter.state {
        add("--state", state.as_str());
    }
    for (value, (_, flag)) in values(filter).into_iter().zip(TEXTS) {
        if let Some(value) = value {
            add(flag, value);
        }
    }
    if let Some(at) = filter.as_of {
        add("--as-of", &rfc3339(at));
    }
    command
}

/// In the order of `TEXTS`.
fn values(filter: &MessageFilter) -> [&Option<String>; 6] {
    let MessageFilter { site, retailer, caller, reason, url_contains, correlation_id, .. } = filter;
    [site, retailer, caller, reason, url_contains, correlation_id]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_comes_back_as_it_was() {
        let query = "state=failed&site=a.test&reason=http_error+404&text=%C3%A4%26&as_of=1500000";
        let filter = read(&Form::of(query.as_bytes())).unwrap();
        assert_eq!(filter.state, Some(MessageState::Failed));
        assert_eq!(filter.url_contains.as_deref(), Some("ä&"));
        assert_eq!(path(&filter, None), format!("/dashboard/messages?{query}"));
        assert_eq!(path(&MessageFilter::default(), None), "/dashboard/messages");
        assert_eq!(path(&MessageFilter::default(), Some(-7)), "/dashboard/messages?from=-7");
        assert_eq!(read(&Form::of(b"state=&as_of=&site=+")).unwrap(), MessageFilter::default());
        assert!(read(&Form::of(b"state=odd")).is_err() && read(&Form::of(b"as_of=x")).is_err());
    }
}

//! Converts arguments to a selection of messages.

use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::oversight::{MessageFilter, MessageState};
use fetchwell_policy::time::Time;
use jiff::Timestamp;

use crate::commands::messages::args::MessageFilterArgs;
use crate::console::exit::Exit;

pub(super) fn filter(typed: &MessageFilterArgs) -> Result<MessageFilter, Exit> {
    Ok(MessageFilter {
        state: typed.state.as_deref().and_then(MessageState::parse),
        site: typed.site.clone(),
        retailer: typed.retailer.clone(),
        caller: typed.caller.clone(),
        reason: typed.reason.clone(),
        url_contains: typed.url.clone(),
        correlation_id: typed.correlation_id.clone(),
        as_of: typed.as_of.as_deref().map(moment).transpose()?,
    })
}

/// Parses a message ID.
pub(super) fn message(text: &str) -> Result<MessageId, Exit> {
    text.parse().map_err(|fault| {
        Exit::Usage(format!(
            "{text:?} is not a message id: {fault}; run `fetchwell messages list` to see all"
        ))
    })
}

fn moment(text: &str) -> Result<Time, Exit> {
    let at: Timestamp = text.parse().map_err(|fault| {
        Exit::Usage(format!(
            "--as-of {text:?} is not a time: {fault}; write it as `fetchwell messages list` prints \
             it, such as 2026-11-15T12:34:56Z"
        ))
    })?;
    Ok(Time::from_micros(at.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_meant() {
        let typed = MessageFilterArgs {
            state: Some("failed".to_owned()),
            url: Some("/x".to_owned()),
            as_of: Some("1970-01-01T00:00:02Z".to_owned()),
            ..MessageFilterArgs::default()
        };
        let expected = MessageFilter {
            state: Some(MessageState::Failed),
            url_contains: Some("/x".to_owned()),
            as_of: Some(Time::from_secs(2)),
            ..MessageFilter::default()
        };
        assert_eq!(filter(&typed).unwrap(), expected);
        let wrong = MessageFilterArgs { as_of: Some("noon".to_owned()), ..typed };
        assert!(matches!(filter(&wrong), Err(Exit::Usage(text)) if text.contains("noon")));
        assert!(matches!(message("msg_1"), Err(Exit::Usage(_))));
    }
}

//! The actions on messages.

use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::oversight::{
    Action, Count, MessageFilter, MessageState, MessageSummary,
};

use super::{filter, oversight};
use crate::dashboard::access::{Form, Order};
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::offer::{Mood, Offer};
use crate::dashboard::words;

/// The number of messages of a canary.
const CANARIES: usize = 1;

/// The path to which the forms are posted.
const ACTION: &str = "/dashboard/messages/act";

/// The actions on one message.
pub(super) fn offers_for_one(message: &MessageSummary) -> Vec<Offer> {
    let offer = |act: Action, label: &str, about, mood| Offer {
        action: ACTION.to_owned(),
        label: label.to_owned(),
        about,
        command: format!("fetchwell messages {} {}", act.as_str(), message.id),
        mood,
        fields: vec![("what", act.as_str().to_owned()), ("id", message.id.to_string())],
        asks: None,
    };
    let retry = |label, about| offer(Action::Retry, label, about, Mood::First);
    let cancel = || {
        let about = "The message ends, and its caller is told that an operator cancelled it.";
        offer(Action::Cancel, "Cancel", about, Mood::Grave)
    };
    match message.state {
        MessageState::Completed | MessageState::Failed => {
            vec![retry("Try again", "Sends a new message; this one keeps its result.")]
        }
        MessageState::Delayed => {
            vec![retry("Try now", "It becomes due now, at the pace of its site."), cancel()]
        }
        MessageState::Queued => vec![cancel()],
        MessageState::Processing => Vec::new(),
    }
}

/// The actions on all messages that match, if their state allows any.
pub(super) fn offers_for_all(as_seen: &MessageFilter, count: &Count) -> Vec<Offer> {
    if count.found == 0 {
        return Vec::new();
    }
    let number = how_many(count);
    let offer = |act: Action, label: String, about, mood, canary: bool| {
        let mut fields = filter::fields(as_seen);
        fields.push(("what", act.as_str().to_owned()));
        let mut command = filter::command(act.as_str(), as_seen);
        if canary {
            fields.push(("canary", "1".to_owned()));
            command.push_str(" --canary");
        }
        Offer { action: ACTION.to_owned(), label, about, command, mood, fields, asks: None }
    };
    let mut offers = Vec::new();
    if let Some(MessageState::Failed | MessageState::Delayed) = as_seen.state {
        let one = "Only the newest of them, as a test.";
        let all = "Messages that arrived or ended since are not affected.";
        offers.push(offer(Action::Retry, "Retry one".to_owned(), one, Mood::First, true));
        offers.push(offer(Action::Retry, format!("Retry all {number}"), all, Mood::Plain, false));
    }
    if let Some(MessageState::Queued | MessageState::Delayed) = as_seen.state {
        let about = "They end, and their callers are told. Messages that arrived since are not \
                     affected.";
        let label = format!("Cancel all {number}");
        offers.push(offer(Action::Cancel, label, about, Mood::Grave, false));
    }
    offers
}

/// `1,234`, or `at least 10,000`.
pub(super) fn how_many(count: &Count) -> String {
    let least = if count.is_exact { "" } else { "at least " };
    format!("{least}{}", words::count::<u64>(count.found))
}

/// Acts on one message, or on those that matched when the page was shown.
pub(in super::super) async fn act(order: Order) -> PageResult {
    let Some(oversight) = oversight(&order.by.dashboard) else {
        return Err(PageError::NotFound("this process has no messages"));
    };
    let form = &order.form;
    let act = match form.need("what")? {
        "retry" => Action::Retry,
        "cancel" => Action::Cancel,
        _ => return Err(PageError::BadRequest("unknown action")),
    };
    let action = format!("{}_messages", act.as_str());
    if let Some(id) = form.text("id") {
        let id: MessageId =
            id.parse().map_err(|_| PageError::BadRequest("id is not a message id"))?;
        let deeds = oversight.act_on(act, &[id], None).await?;
        let told = deeds.first().map_or_else(String::new, |deed| format!("{id} {}", deed.told()));
        if !deeds.iter().any(|deed| deed.is_done()) {
            return Ok(order.not_done(format!("{told}.")));
        }
        order.note(&action, told.clone()).await?;
        return Ok(order.told(format!("{told}.")));
    }
    let filter = as_seen(form)?;
    let most = if form.text("canary").is_some() { CANARIES } else { usize::MAX };
    let acted = oversight.act(act, &filter, most).await?;
    let done = match act {
        Action::Retry => "Retried",
        Action::Cancel => "Cancelled",
    };
    let text = format!(
        "{done}: {}. Unchanged: {}.",
        words::count::<u64>(acted.done),
        words::count::<u64>(acted.left_alone)
    );
    let detail =
        format!("{} messages that match: {}", acted.done, filter::command(act.as_str(), &filter));
    order.note(&action, detail).await?;
    Ok(order.told(text))
}

/// The filter of a form. It must include a time and a state.
fn as_seen(form: &Form) -> Result<MessageFilter, PageError> {
    let filter = filter::read(form);
    if filter.as_of.is_none() || filter.state.is_none() {
        return Err(PageError::BadRequest("the form lacks state or as_of"));
    }
    Ok(filter)
}

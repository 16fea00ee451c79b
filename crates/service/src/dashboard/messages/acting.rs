//! The actions on messages.

use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::oversight::{
    Action, ActionResult, Count, MessageFilter, MessageState, MessageSummary,
};

use super::{filter, oversight};
use crate::dashboard::access::{Form, Order};
use crate::dashboard::bulk::{self, MOST_SELECTED};
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::offer::{Mood, Offer};
use crate::dashboard::words;

/// The number of messages of a canary.
const CANARIES: usize = 1;

/// The path to which the forms are posted.
pub(super) const ACTION: &str = "/dashboard/messages/act";

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
        let about =
            "The message ends with the status cancelled; the audit log records who cancelled it.";
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
    let ids = form.all("id", MOST_SELECTED);
    if form.text("selected").is_some() || !ids.is_empty() {
        return act_on_some(&order, act, &action, &ids).await;
    }
    let filter = as_seen(form)?;
    let most = if form.text("canary").is_some() { CANARIES } else { usize::MAX };
    let acted = oversight.act(act, &filter, most).await?;
    let done = done(act);
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

/// Acts on these messages: one of a page of its own, or those that were selected in a list.
async fn act_on_some(order: &Order, act: Action, action: &str, ids: &[&str]) -> PageResult {
    let Some(oversight) = oversight(&order.by.dashboard) else {
        return Err(PageError::NotFound("this process has no messages"));
    };
    let parsed: Result<Vec<MessageId>, _> = ids.iter().map(|id| id.parse()).collect();
    let ids = parsed.map_err(|_| PageError::BadRequest("id is not a message id"))?;
    if ids.is_empty() {
        return Ok(order.not_done("Nothing was done: select at least one message.".to_owned()));
    }
    let results = oversight.act_on(act, &ids, order.form.time("as_of")?).await?;
    let changed = results.iter().filter(|result| result.is_done()).count();
    let told = match (ids.as_slice(), results.as_slice()) {
        ([id], [result]) => format!("{id} {}", result.told()),
        _ => summary(act, &ids, &results),
    };
    if changed == 0 {
        return Ok(order.not_done(format!("{told}.")));
    }
    order.note(action, told.clone()).await?;
    Ok(order.told(format!("{told}.")))
}

/// `Retried: 3. Unchanged: 2 (MESSAGE was not changed: …)`, with the first message that was not changed as an example.
fn summary(act: Action, ids: &[MessageId], results: &[ActionResult]) -> String {
    let changed = results.iter().filter(|result| result.is_done()).count();
    let unchanged = results.len() - changed;
    let mut told = format!("{}: {changed}", done(act));
    let example = ids.iter().zip(results).find(|(_, result)| !result.is_done());
    if let Some((id, result)) = example {
        told.push_str(&format!(". Unchanged: {unchanged}; for example, {id} {}", result.told()));
    }
    told
}

fn done(act: Action) -> &'static str {
    match act {
        Action::Retry => "Retried",
        Action::Cancel => "Cancelled",
    }
}

/// The actions on selected messages, if their state allows any.
pub(super) fn bulk_buttons(
    state: Option<MessageState>,
) -> Vec<(&'static str, &'static str, &'static str)> {
    match state {
        None | Some(MessageState::Delayed) => vec![bulk::RETRY, bulk::CANCEL],
        Some(MessageState::Queued) => vec![bulk::CANCEL],
        Some(MessageState::Processing) => Vec::new(),
        Some(MessageState::Completed | MessageState::Failed) => vec![bulk::RETRY],
    }
}

/// The filter of a form. It must include a time and a state.
fn as_seen(form: &Form) -> Result<MessageFilter, PageError> {
    let filter = filter::read(form)?;
    if filter.as_of.is_none() || filter.state.is_none() {
        return Err(PageError::BadRequest("the form lacks state or as_of"));
    }
    Ok(filter)
}

//! Operator actions on messages.

use std::collections::VecDeque;

use super::{MESSAGES_PER_PAGE, MessageFilter, Oversight};
use crate::ports::error::StoreError;
use crate::ports::inbox::MessageId;

/// The maximum number of messages per call of [`Oversight::act_on`].
pub const MESSAGES_PER_ACT: usize = MESSAGES_PER_PAGE as usize;

/// An action on messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Retries a message that has ended, as a new message; makes a delayed message due at once.
    Retry,
    /// Ends a waiting message. Its caller gets a result with the status `cancelled`.
    Cancel,
}

impl Action {
    /// The name of the action.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Retry => "retry",
            Action::Cancel => "cancel",
        }
    }
}

/// The effect of an action on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionResult {
    /// It had ended; this new message repeats it.
    Renewed(MessageId),
    /// It was delayed, and is due now.
    Hastened,
    /// It was waiting, and has ended. Its caller has a result that says so.
    Cancelled,
    /// Unchanged: it was already retried as this message.
    RetriedBefore(MessageId),
    /// Unchanged: it is already due and waits for its turn.
    IsDue,
    /// Unchanged: it waits for the result of another message, and ends with that one.
    Follows,
    /// Unchanged: an instance is processing it.
    InFlight,
    /// Unchanged: it has ended, so it cannot be cancelled.
    HasEnded,
    /// Unchanged: it was accepted or ended after `as_of`.
    CameLater,
    /// There is no such message.
    Unknown,
}

impl ActionResult {
    /// Whether the message was changed.
    pub fn is_done(self) -> bool {
        matches!(self, ActionResult::Renewed(_) | ActionResult::Hastened | ActionResult::Cancelled)
    }

    /// The name of the effect.
    pub fn as_str(self) -> &'static str {
        match self {
            ActionResult::Renewed(_) => "renewed",
            ActionResult::Hastened => "hastened",
            ActionResult::Cancelled => "cancelled",
            ActionResult::RetriedBefore(_) => "retried_before",
            ActionResult::IsDue => "is_due",
            ActionResult::Follows => "follows",
            ActionResult::InFlight => "in_flight",
            ActionResult::HasEnded => "has_ended",
            ActionResult::CameLater => "came_later",
            ActionResult::Unknown => "unknown",
        }
    }

    /// The message that retries it.
    pub fn another_try(self) -> Option<MessageId> {
        match self {
            ActionResult::Renewed(new) | ActionResult::RetriedBefore(new) => Some(new),
            _ => None,
        }
    }

    /// A description that follows the ID of the message.
    pub fn told(self) -> String {
        match self {
            ActionResult::Renewed(new) => format!("is retried as {new}"),
            ActionResult::Hastened => "is due now".to_owned(),
            ActionResult::Cancelled => "was cancelled".to_owned(),
            ActionResult::RetriedBefore(new) => {
                format!("was not changed: it was already retried as {new}")
            }
            ActionResult::IsDue => "was not changed: it is due, and waits for its turn".to_owned(),
            ActionResult::Follows => {
                "was not changed: it waits for the result of an identical request".to_owned()
            }
            ActionResult::InFlight => "was not changed: an instance is processing it".to_owned(),
            ActionResult::HasEnded => "was not changed: it has ended".to_owned(),
            ActionResult::CameLater => {
                "was not changed: it was accepted or ended after that time".to_owned()
            }
            ActionResult::Unknown => "does not exist".to_owned(),
        }
    }
}

/// The effects of an action on the messages that matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acted {
    /// The effect on each message, newest first; at most [`MESSAGES_PER_ACT`].
    pub deeds: Vec<(MessageId, ActionResult)>,
    /// The number of changed messages.
    pub done: u64,
    /// The number of unchanged messages.
    pub left_alone: u64,
}

impl Acted {
    /// Adds the effect on a message.
    pub fn enter(&mut self, message: MessageId, deed: ActionResult) {
        if deed.is_done() {
            self.done += 1;
        } else {
            self.left_alone += 1;
        }
        if self.deeds.len() < MESSAGES_PER_ACT {
            self.deeds.push((message, deed));
        }
    }
}

/// Acts page by page. Each page is one call, unless it has more messages than are wanted.
pub(super) async fn act_on_matches<O: Oversight + ?Sized>(
    store: &O,
    act: Action,
    filter: &MessageFilter,
    most: usize,
) -> Result<Acted, StoreError> {
    let mut filter = filter.clone();
    let mut acted = Acted::default();
    let mut from = None;
    loop {
        let page = store.list(&filter, from, MESSAGES_PER_PAGE).await?;
        filter.as_of = Some(page.as_of);
        let mut ids: VecDeque<MessageId> = page.messages.iter().map(|seen| seen.id).collect();
        // Unchanged messages do not count, so more of the page may be needed.
        while let left @ 1.. = wanted(&acted, most).min(ids.len()) {
            let part: Vec<MessageId> = ids.drain(..left).collect();
            let deeds = store.act_on(act, &part, filter.as_of).await?;
            for (id, deed) in part.into_iter().zip(deeds) {
                acted.enter(id, deed);
            }
        }
        from = page.next;
        if from.is_none() || wanted(&acted, most) == 0 {
            return Ok(acted);
        }
    }
}

/// How many more messages to change.
fn wanted(acted: &Acted, most: usize) -> usize {
    most.saturating_sub(usize::try_from(acted.done).unwrap_or(usize::MAX))
}

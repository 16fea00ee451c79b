//! What operators do about messages.

use std::collections::VecDeque;

use super::{Filter, MESSAGES_PER_PAGE, Oversight};
use crate::ports::error::StoreError;
use crate::ports::inbox::MessageId;

/// The most messages that one move acts on.
pub const MESSAGES_PER_ACT: usize = MESSAGES_PER_PAGE as usize;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Try anew what has ended, as a message of its own; what waits for a time is due at once.
    Retry,
    /// End what waits: its caller is told that an operator cancelled it.
    Cancel,
}

impl Act {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Act::Retry => "retry",
            Act::Cancel => "cancel",
        }
    }
}

/// What was done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It had ended: this new message asks for the same.
    Renewed(MessageId),
    /// It waited for a time, and is due now.
    Hastened,
    /// It waited, and has ended: its caller has a result that says so.
    Cancelled,
    /// Nothing: this message is another try of it already.
    RetriedBefore(MessageId),
    /// Nothing: it is due already, and waits for its turn.
    IsDue,
    /// Nothing: it waits for the result of another message, and ends with that.
    Follows,
    /// Nothing: an instance is at work on it.
    InFlight,
    /// Nothing: it has ended, so there is nothing to cancel.
    HasEnded,
    /// Nothing: it came in or ended after the moment that counts.
    CameLater,
    /// Nothing: there is no such message.
    Unknown,
}

impl Deed {
    /// Whether anything was done.
    pub fn is_done(self) -> bool {
        matches!(self, Deed::Renewed(_) | Deed::Hastened | Deed::Cancelled)
    }

    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Deed::Renewed(_) => "renewed",
            Deed::Hastened => "hastened",
            Deed::Cancelled => "cancelled",
            Deed::RetriedBefore(_) => "retried_before",
            Deed::IsDue => "is_due",
            Deed::Follows => "follows",
            Deed::InFlight => "in_flight",
            Deed::HasEnded => "has_ended",
            Deed::CameLater => "came_later",
            Deed::Unknown => "unknown",
        }
    }

    /// The message that is another try of it.
    pub fn another_try(self) -> Option<MessageId> {
        match self {
            Deed::Renewed(new) | Deed::RetriedBefore(new) => Some(new),
            _ => None,
        }
    }

    /// In words, after the name of the message.
    pub fn told(self) -> String {
        match self {
            Deed::Renewed(new) => format!("is retried as {new}"),
            Deed::Hastened => "is due now".to_owned(),
            Deed::Cancelled => "was cancelled".to_owned(),
            Deed::RetriedBefore(new) => {
                format!("was not changed: it was already retried as {new}")
            }
            Deed::IsDue => "was not changed: it is due, and waits for its turn".to_owned(),
            Deed::Follows => {
                "was not changed: it waits for the result of an identical request".to_owned()
            }
            Deed::InFlight => "was not changed: an instance is processing it".to_owned(),
            Deed::HasEnded => "was not changed: it has ended".to_owned(),
            Deed::CameLater => {
                "was not changed: it was accepted or ended after that time".to_owned()
            }
            Deed::Unknown => "does not exist".to_owned(),
        }
    }
}

/// What became of messages that matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acted {
    /// What was done with something, and with what, the newest first: at most [`MESSAGES_PER_ACT`] of them.
    pub deeds: Vec<(MessageId, Deed)>,
    /// With how many something was done.
    pub done: u64,
    /// How many were left alone.
    pub left_alone: u64,
}

impl Acted {
    /// Enters what was done.
    pub fn enter(&mut self, message: MessageId, deed: Deed) {
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

/// Page by page; each page is one move, unless fewer are wanted than it has.
pub(super) async fn act_on_matches<O: Oversight + ?Sized>(
    store: &O,
    act: Act,
    filter: &Filter,
    most: usize,
) -> Result<Acted, StoreError> {
    let mut filter = filter.clone();
    let mut acted = Acted::default();
    let mut from = None;
    loop {
        let page = store.list(&filter, from, MESSAGES_PER_PAGE).await?;
        filter.as_of = Some(page.as_of);
        let mut ids: VecDeque<MessageId> = page.messages.iter().map(|seen| seen.id).collect();
        // One that is left alone does not count, so there may be more to do after a part.
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

/// How many are still to be acted on.
fn wanted(acted: &Acted, most: usize) -> usize {
    most.saturating_sub(usize::try_from(acted.done).unwrap_or(usize::MAX))
}

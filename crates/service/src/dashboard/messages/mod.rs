//! Messages: the state and the timeline of each, and the actions on them.

mod acting;
mod filter;
mod list;
mod one;
mod reason;

use askama::Template;
use fetchwell_engine::ports::oversight::{MessageState, Oversight};

use super::Dashboard;

pub(super) use acting::act;
pub(super) use list::page;
pub(super) use one::page as message;

#[derive(Template)]
#[template(path = "absent_messages.html")]
struct Absent;

fn oversight(dashboard: &Dashboard) -> Option<&dyn Oversight> {
    dashboard.subject.oversight.as_deref()
}

/// The color class of a state.
fn mood(state: &MessageState) -> &'static str {
    match state {
        MessageState::Queued => "",
        MessageState::Processing => "info",
        MessageState::Delayed => "warn",
        MessageState::Completed => "good",
        MessageState::Failed => "bad",
    }
}

//! Messages: where each stands, how it came there, and what to do about it.

mod acting;
mod filter;
mod list;
mod one;

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

/// How a state is coloured.
fn mood(state: &MessageState) -> &'static str {
    match state {
        MessageState::Queued => "",
        MessageState::Processing => "info",
        MessageState::Delayed => "warn",
        MessageState::Completed => "good",
        MessageState::Failed => "bad",
    }
}

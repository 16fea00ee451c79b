//! What an operator can do on a page: a form with one button, and the command that does the same.

/// One of them.
pub(super) struct Offer {
    /// Where the form goes.
    pub(super) action: String,
    pub(super) label: String,
    pub(super) about: &'static str,
    pub(super) command: String,
    pub(super) mood: Mood,
    /// What the form says besides.
    pub(super) fields: Vec<(&'static str, String)>,
    /// What it asks for.
    pub(super) asks: Option<Question>,
}

/// A field to be filled in.
pub(super) struct Question {
    pub(super) label: &'static str,
    pub(super) name: &'static str,
    pub(super) proposal: String,
}

/// How a button looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// What most come for.
    First,
    /// As well as any.
    Plain,
    /// What can't be taken back.
    Grave,
}

impl Mood {
    pub(super) fn class(self) -> &'static str {
        match self {
            Mood::First => "primary",
            Mood::Plain => "",
            Mood::Grave => "danger",
        }
    }
}

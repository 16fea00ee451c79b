//! An action that a page offers to operators: a form with one button, and the equivalent command.

pub(super) struct Offer {
    /// The path to which the form is posted.
    pub(super) action: String,
    pub(super) label: String,
    pub(super) about: &'static str,
    pub(super) command: String,
    pub(super) mood: Mood,
    /// Hidden fields of the form.
    pub(super) fields: Vec<(&'static str, String)>,
    /// A value that the operator has to enter.
    pub(super) asks: Option<Question>,
}

/// A form field to fill in.
pub(super) struct Question {
    pub(super) label: &'static str,
    pub(super) name: &'static str,
    pub(super) proposal: String,
}

/// The style of a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// The most common action.
    First,
    Plain,
    /// An action that cannot be undone.
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

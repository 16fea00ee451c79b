//! Actions on the selected rows of a list: a check box per row, and one form with the actions below the list. The check
//! boxes belong to the form by their `form` attribute, so all of it works without scripts.

use super::access::Visitor;

/// The maximum number of rows that one form may select; pages list fewer.
pub(super) const MOST_SELECTED: usize = 200;

/// The form below a list.
pub(super) struct Bulk {
    /// The path to which the form is posted.
    pub(super) action: &'static str,
    /// The page without a selection, to which the form redirects.
    pub(super) back: String,
    /// The page with all rows selected.
    pub(super) select_all: String,
    /// Whether all rows are selected at first.
    pub(super) is_all: bool,
    /// Actions apply to what was there at this time.
    pub(super) as_of: i64,
    /// The values, labels and color classes of the buttons.
    pub(super) buttons: Vec<(&'static str, &'static str, &'static str)>,
}

pub(super) const RETRY: (&str, &str, &str) = ("retry", "Retry selected", "");
pub(super) const DROP: (&str, &str, &str) = ("drop", "Drop selected", "danger");
pub(super) const CANCEL: (&str, &str, &str) = ("cancel", "Cancel selected", "danger");

impl Bulk {
    /// The form of this page; `None` if the visitor may not act, or if there is no action.
    pub(super) fn of(
        visitor: &Visitor,
        action: &'static str,
        as_of: i64,
        buttons: Vec<(&'static str, &'static str, &'static str)>,
    ) -> Option<Bulk> {
        let is_all = visitor.query().text("select") == Some("all");
        (visitor.may_act() && !buttons.is_empty()).then(|| Bulk {
            action,
            back: visitor.here_with("select", None),
            select_all: visitor.here_with("select", Some("all")),
            is_all,
            as_of,
            buttons,
        })
    }
}

//! Dead letters, as commands and the dashboard show them.

use fetchwell_engine::ports::dead_letters::{DeadGroup, DeadLetter};
use serde_json::{Value, json};

/// Shown for URLs without a site.
pub const NO_SITE: &str = "-";

/// A letter as a line of JSON.
pub fn letter_line(letter: &DeadLetter) -> String {
    let DeadGroup { reason, site } = &letter.group;
    let details = details_of(letter);
    let line = json!({"url": letter.url, "site": site, "reason": reason, "details": details});
    format!("{line}\n")
}

/// The name of a site, or [`NO_SITE`] if it is empty.
pub fn site_name(site: &str) -> &str {
    if site.is_empty() { NO_SITE } else { site }
}

/// The details of a letter; as a string if another program stored something that is not JSON.
pub fn details_of(letter: &DeadLetter) -> Value {
    let Some(details) = &letter.details else { return Value::Null };
    serde_json::from_str(details).unwrap_or_else(|_| json!(details))
}

//! Dead letters, as commands and pages show them.

use fetchwell_engine::ports::dead_letters::{DeadGroup, DeadLetter};
use serde_json::{Value, json};

/// How the site of URLs is written that have none.
pub const NO_SITE: &str = "-";

/// A letter as a line of JSON.
pub fn letter_line(letter: &DeadLetter) -> String {
    let DeadGroup { reason, site } = &letter.group;
    let details = details_of(letter);
    let line = json!({"url": letter.url, "site": site, "reason": reason, "details": details});
    format!("{line}\n")
}

/// The name of a site, or of none.
pub fn site_name(site: &str) -> &str {
    if site.is_empty() { NO_SITE } else { site }
}

/// What the door knew; others may have written there, too.
pub fn details_of(letter: &DeadLetter) -> Value {
    let Some(details) = &letter.details else { return Value::Null };
    serde_json::from_str(details).unwrap_or_else(|_| json!(details))
}

//! Acts on the letters of a group as the user saw it, and not on later ones.

use fetchwell_engine::ports::dead_letters::{
    DeadGroup, DeadLetter, DeadLetters, LETTERS_PER_PAGE, Revision,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use jiff::Timestamp;

use crate::views::letters::details_of;

/// Retries or drops at most `most` letters of a group that were dead at `as_of`. Returns how many.
pub(super) async fn revise(
    letters: &dyn DeadLetters,
    group: &DeadGroup,
    (as_of, most): (Time, usize),
    revision: Revision,
) -> Result<usize, StoreError> {
    let mut revised = 0;
    let mut from = None;
    loop {
        let page = letters.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
        let meant =
            page.letters.iter().filter(|letter| letter.group == *group && was_dead(letter, as_of));
        let ids: Vec<LeaseId> = meant.take(most - revised).map(|letter| letter.id).collect();
        if !ids.is_empty() {
            revised += letters.take_off(&ids, revision).await?;
        }
        from = page.next;
        if from.is_none() || revised >= most {
            return Ok(revised);
        }
    }
}

/// Whether a letter was dead at that time. A letter without a time was added by another program; it counts as seen,
/// since otherwise nobody could ever act on it.
fn was_dead(letter: &DeadLetter, as_of: Time) -> bool {
    let died = details_of(letter)["last_at"].as_str().and_then(|text| text.parse().ok());
    died.is_none_or(|died: Timestamp| died.as_microsecond() <= as_of.as_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(details: Option<&str>) -> DeadLetter {
        let group = DeadGroup { reason: "gone".to_owned(), site: "a.test".to_owned() };
        DeadLetter {
            id: 1,
            url: "http://a.test/".to_owned(),
            group,
            details: details.map(str::to_owned),
        }
    }

    #[test]
    fn what_died_later_was_not_there_to_see() {
        let as_of = Time::from_secs(100);
        for (details, expected) in [
            (Some(r#"{"last_at":"1970-01-01T00:01:40Z"}"#), true),
            (Some(r#"{"last_at":"1970-01-01T00:01:40.000001Z"}"#), false),
            (Some(r#"{"last_at":"yesterday"}"#), true),
            (Some("no json"), true),
            (None, true),
        ] {
            assert_eq!(was_dead(&letter(details), as_of), expected, "{details:?}");
        }
    }
}

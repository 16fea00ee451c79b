//! Prints dead letters, as tables or JSON.

use fetchwell_engine::ports::dead_letters::{DeadGroup, DeadLetter, GroupSize};
use fetchwell_service::views::letters::{details_of, letter_line, site_name};
use serde_json::{Value, json};

use crate::console::output::json_line;
use crate::console::table::{plain, table};

pub(super) fn groups(groups: &[(DeadGroup, GroupSize)], limit: usize, as_json: bool) -> String {
    let shown = groups.iter().take(limit);
    if as_json {
        return shown.map(|(group, size)| group_line(group, size)).collect();
    }
    if groups.is_empty() {
        return "there are no dead letters\n".to_owned();
    }
    let rows = shown.map(|(group, size)| {
        let site = site_name(&group.site).to_owned();
        [size.letters.to_string(), site, plain(&group.reason), plain(&size.sample_url)]
    });
    let mut text = table(["letters", "site", "reason", "example"], &rows.collect::<Vec<_>>());
    if groups.len() > limit {
        text.push_str(&format!("and {} more; use --limit to show them\n", groups.len() - limit));
    }
    text
}

/// A list of dead letters, one line each.
pub(super) fn letters(letters: &[DeadLetter], as_json: bool) -> String {
    if as_json {
        return letters.iter().map(letter_line).collect();
    }
    if letters.is_empty() {
        return "no matching dead letters\n".to_owned();
    }
    let rows = letters.iter().map(|letter| {
        let DeadGroup { reason, site } = &letter.group;
        [site_name(site).to_owned(), plain(reason), plain(&letter.url)]
    });
    table(["site", "reason", "url"], &rows.collect::<Vec<_>>())
}

/// All details of each letter.
pub(super) fn in_full(letters: &[DeadLetter], as_json: bool) -> String {
    if as_json {
        return self::letters(letters, true);
    }
    let mut text = String::new();
    for letter in letters {
        let DeadGroup { reason, site } = &letter.group;
        text.push_str(&format!("{}\n", letter.url.escape_debug()));
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("  {name:<12} {}\n", value.escape_debug()));
        };
        line("site", site_name(site));
        line("reason", reason);
        let Value::Object(details) = details_of(letter) else { continue };
        for (name, value) in details.iter().filter(|(name, _)| *name != "reason") {
            line(name, value.as_str().unwrap_or(&value.to_string()));
        }
    }
    text
}

fn group_line(group: &DeadGroup, size: &GroupSize) -> String {
    let GroupSize { letters, sample_url } = size;
    json_line(json!({
        "reason": group.reason, "site": group.site, "letters": letters, "sample_url": sample_url,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(url: &str, details: Option<&str>) -> DeadLetter {
        let group = DeadGroup { reason: "the server answered 404".into(), site: "a.test".into() };
        DeadLetter { id: 1, url: url.to_owned(), group, details: details.map(str::to_owned) }
    }

    fn group(reason: &str, site: &str, letters: u64) -> (DeadGroup, GroupSize) {
        let group = DeadGroup { reason: reason.to_owned(), site: site.to_owned() };
        (group, GroupSize { letters, sample_url: "http://a.test/\u{1b}[2J".to_owned() })
    }

    #[test]
    fn groups_are_a_table_that_no_terminal_obeys() {
        let all = [group("gone", "a.test", 12), group("no URL", "", 1), group("more", "b.test", 1)];
        let expected = "letters  site    reason  example\n\
                        12       a.test  gone    http://a.test/\\u{1b}[2J\n\
                        1        -       no URL  http://a.test/\\u{1b}[2J\n\
                        and 1 more; use --limit to show them\n";
        assert_eq!(groups(&all, 2, false), expected);
        assert_eq!(groups(&all, 2, true).lines().count(), 2);
    }

    #[test]
    fn details_are_told_whoever_wrote_them() {
        let known = letter("http://a.test/", Some(r#"{"reason":"x","attempts":3}"#));
        let text = in_full(&[known], false);
        assert!(text.contains("  attempts     3\n") && !text.contains('x'), "{text}");
        for (details, expected) in [
            (None, Value::Null),
            (Some("no json"), json!("no json")),
            (Some(r#"{"a":1}"#), json!({"a": 1})),
        ] {
            let line: Value = serde_json::from_str(&letter_line(&letter("u", details))).unwrap();
            assert_eq!(line["details"], expected);
        }
    }
}

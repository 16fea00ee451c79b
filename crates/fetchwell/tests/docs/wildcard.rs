//! Whether what was printed is what a page shows: `…` stands for whatever it leaves out.

/// Within a line `…` stands for any text of that line; alone on a line, for any lines, or none.
pub(crate) fn matches(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
    };
    lines_match(&lines(shown), &lines(printed))
}

/// Whether it begins so: for what is still being printed.
pub(crate) fn begins(shown: &str, printed: &str) -> bool {
    shown.trim().is_empty() || matches(&format!("{}\n…", shown.trim_end()), printed)
}

fn lines_match(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && lines_match(rest, others)),
    }
}

fn line_matches(shown: &str, line: &str) -> bool {
    let Some((beginning, rest)) = shown.split_once('…') else { return shown == line };
    let Some(line) = line.strip_prefix(beginning) else { return false };
    let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    ends.into_iter().any(|at| line_matches(rest, &line[at..]))
}

#[test]
fn what_is_left_out_may_be_anything() {
    for (shown, printed, fits) in [
        ("a\nb\n", "a\nb\n", true),
        ("a\nb\n", "a\nb", true),
        ("a\n", "a\nb\n", false),
        ("a …\n", "a and more\n", true),
        ("a …\n", "b and more\n", false),
        ("… INFO x … y", "12:00 INFO x is y", true),
        ("… INFO x … y", "12:00 INFO x is z", false),
        ("…\nb\n", "a\na\nb\n", true),
        ("…\nb\n", "b\n", true),
        ("a\n…\n", "a\n", true),
        ("a\n…\nc\n", "a\nb\n", false),
        ("", "", true),
        ("", "a", false),
    ] {
        assert_eq!(matches(shown, printed), fits, "{shown:?} of {printed:?}");
    }
    assert!(begins("", "a\n"));
    assert!(begins("a\n", "a\nb\n") && begins("a\n", "a\n") && !begins("a\n", "b\n"));
}

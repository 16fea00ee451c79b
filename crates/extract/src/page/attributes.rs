//! The attributes of a start tag.

/// The names and raw values in what follows a tag's name. Anything is accepted.
pub(super) fn parse(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = source;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(is_gap);
        if rest.is_empty() {
            return None;
        }
        // The first character belongs to the name even if it is `=`, so each turn moves on.
        let is_end = |(at, c): &(usize, char)| *at > 0 && (is_gap(*c) || *c == '=');
        let end = rest.char_indices().find(is_end).map_or(rest.len(), |(at, _)| at);
        let (name, after_name) = rest.split_at_checked(end)?;
        let Some(after_equals) = after_name.trim_ascii_start().strip_prefix('=') else {
            rest = after_name;
            return Some((name, ""));
        };
        let (value, after_value) = value(after_equals.trim_ascii_start());
        rest = after_value;
        Some((name, value))
    })
}

fn value(source: &str) -> (&str, &str) {
    let unquoted_end = |c: char| c.is_ascii_whitespace();
    match source.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inside = source.get(1..).unwrap_or_default();
            inside.split_once(quote).unwrap_or((inside, ""))
        }
        _ => {
            let end = source.find(unquoted_end).unwrap_or(source.len());
            source.split_at_checked(end).unwrap_or((source, ""))
        }
    }
}

fn is_gap(c: char) -> bool {
    c.is_ascii_whitespace() || c == '/'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let source = r#" a="1 > 0" B='two' c=three/x d e = "5" / ="6" f="open"#;
        let got: Vec<_> = parse(source).collect();
        let want = [
            ("a", "1 > 0"),
            ("B", "two"),
            ("c", "three/x"),
            ("d", ""),
            ("e", "5"),
            ("=\"6\"", ""),
            ("f", "open"),
        ];
        assert_eq!(got, want);
    }
}

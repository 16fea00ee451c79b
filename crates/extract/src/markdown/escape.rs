//! Escapes characters that have a meaning in Markdown.

use std::borrow::Cow;

use memchr::memchr3;

/// Escapes whole words at any position in a line.
pub(super) fn text(words: &str) -> Cow<'_, str> {
    if !may_need_escape(words.as_bytes()) {
        return Cow::Borrowed(words);
    }
    let mut out = String::with_capacity(words.len() + 8);
    let mut before = None;
    let mut characters = words.chars().peekable();
    while let Some(character) = characters.next() {
        if needs_escape(before, character, characters.peek().copied()) {
            out.push('\\');
        }
        out.push(character);
        before = Some(character);
    }
    Cow::Owned(out)
}

/// Whether one of the characters occurs that [`needs_escape`] examines. Most text has none of them.
fn may_need_escape(words: &[u8]) -> bool {
    memchr3(b'\\', b'`', b'*', words).is_some()
        || memchr3(b'_', b'[', b']', words).is_some()
        || memchr3(b'<', b'&', b'~', words).is_some()
}

fn needs_escape(before: Option<char>, character: char, after: Option<char>) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match character {
        '\\' | '`' | '*' | '[' | ']' | '<' => true,
        // Within a word it is not emphasis.
        '_' => !(is_letter(before) && is_letter(after)),
        '&' => is_letter(after) || after == Some('#'),
        '~' => before == Some('~') || after == Some('~'),
        _ => false,
    }
}

/// Escapes what would turn a line of a paragraph into a heading, a list, a quote or a rule.
pub(super) fn paragraph(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let (before, after) = line.split_at_checked(line_start_mark(line)).unwrap_or(("", line));
        out.push_str(before);
        if is_line_start_mark(after, !before.is_empty()) {
            out.push('\\');
        }
        out.push_str(after);
    }
    out
}

/// The position of the mark: after the number of a list item, else at the start of the line.
fn line_start_mark(line: &str) -> usize {
    line.bytes().take_while(u8::is_ascii_digit).count()
}

fn is_line_start_mark(from_mark: &str, has_number: bool) -> bool {
    let rest = from_mark.trim_start_matches('#');
    let is_followed_by_space = |marks: &[char]| {
        from_mark.strip_prefix(marks).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    if has_number {
        return is_followed_by_space(&['.', ')']);
    }
    from_mark.starts_with(['>', '=', '|'])
        || from_mark.starts_with("--")
        || is_followed_by_space(&['-', '+'])
        || (rest.len() < from_mark.len() && (rest.is_empty() || rest.starts_with(' ')))
}

/// Writes an absolute URL as a link destination.
pub(super) fn destination(url: &str) -> String {
    let url = url.replace('\\', "%5C").replace('<', "%3C").replace('>', "%3E");
    if url.contains(['(', ')', ' ']) { format!("<{url}>") } else { url }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_text_are_escaped() {
        for (word, want) in [
            ("plain", "plain"),
            ("*a*", r"\*a\*"),
            ("snake_case_name", "snake_case_name"),
            ("_a_", r"\_a\_"),
            ("<script>", r"\<script>"),
            ("[a](b)", r"\[a\](b)"),
            ("AT&T", r"AT\&T"),
            ("a&b;", r"a\&b;"),
            ("R&", "R&"),
            ("~5", "~5"),
            ("~~x~~", r"\~\~x\~\~"),
        ] {
            assert_eq!(text(word), want);
        }
    }

    #[test]
    fn marks_at_the_start_of_a_line_are_escaped() {
        for (line, want) in [
            ("# a", r"\# a"),
            ("#tag", "#tag"),
            ("- a", r"\- a"),
            ("-5", "-5"),
            ("---", r"\---"),
            ("2024. A year", r"2024\. A year"),
            ("3.5 times", "3.5 times"),
            ("> a\nb\n+ c", "\\> a\nb\n\\+ c"),
        ] {
            assert_eq!(paragraph(line), want);
        }
    }

    #[test]
    fn parentheses_in_an_address_are_enclosed() {
        assert_eq!(destination("https://a.test/b"), "https://a.test/b");
        assert_eq!(destination("https://a.test/b_(c)"), "<https://a.test/b_(c)>");
    }
}

//! Parses dates as people write them.

/// No page is older than the web; a number beyond these is not a year.
const YEARS: std::ops::RangeInclusive<u32> = 1990..=2069;

/// Prefixes of month names in a dozen languages.
#[rustfmt::skip]
const MONTHS: &[(&str, u32)] = &[
    ("jan", 1), ("ene", 1), ("gen", 1), ("янв", 1), ("sty", 1), ("led", 1), ("oca", 1), ("tammi", 1),
    ("feb", 2), ("fév", 2), ("fev", 2), ("фев", 2), ("lut", 2), ("úno", 2), ("şub", 2), ("helmi", 2),
    ("mar", 3), ("mär", 3), ("maa", 3), ("мар", 3), ("bře", 3), ("mrt", 3),
    ("apr", 4), ("avr", 4), ("abr", 4), ("апр", 4), ("kwi", 4), ("nis", 4), ("dub", 4), ("huhti", 4),
    ("may", 5), ("mai", 5), ("mag", 5), ("mei", 5), ("maj", 5), ("мая", 5), ("май", 5), ("touko", 5),
    ("jun", 6), ("juin", 6), ("giu", 6), ("июн", 6), ("cze", 6), ("haz", 6), ("kesä", 6),
    ("jul", 7), ("juil", 7), ("lug", 7), ("июл", 7), ("lip", 7), ("tem", 7), ("heinä", 7),
    ("aug", 8), ("aoû", 8), ("ago", 8), ("авг", 8), ("sie", 8), ("srp", 8), ("ağu", 8), ("elo", 8),
    ("sep", 9), ("set", 9), ("сен", 9), ("wrz", 9), ("zář", 9), ("eyl", 9), ("syys", 9),
    ("oct", 10), ("okt", 10), ("ott", 10), ("out", 10), ("окт", 10), ("paź", 10), ("eki", 10),
    ("nov", 11), ("noy", 11), ("ноя", 11), ("lis", 11), ("kas", 11), ("marras", 11),
    ("dec", 12), ("dez", 12), ("déc", 12), ("dic", 12), ("дек", 12), ("gru", 12), ("pro", 12),
    ("ara", 12), ("joulu", 12),
];

/// A longer word is not the name of a month.
const MAX_MONTH_CHARS: usize = 11;

/// Which number comes first in `5/6/2024`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    DayFirst,
    MonthFirst,
}

/// Whether this is the English name of a month, or its abbreviation.
pub(super) fn is_month(word: &str) -> bool {
    const NAMES: &str = "
        january february march april may june july august september sept october november december";
    let is_it = |name: &str| {
        name.eq_ignore_ascii_case(word)
            || name.get(..3).is_some_and(|short| short.eq_ignore_ascii_case(word))
    };
    NAMES.split_whitespace().any(is_it)
}

/// Finds the first date in a text, as `YYYY-MM-DD`.
pub(super) fn find(text: &str, order: Order) -> Option<String> {
    find_with_lead(text, order).map(|(_, date)| date)
}

/// The same, with the text before the date.
pub(super) fn find_with_lead(text: &str, order: Order) -> Option<(&str, String)> {
    // `17 de mayo de 2024`
    let parts: Vec<Part<'_>> = parts(text).filter(|part| !is_link_word(part)).collect();
    (0..parts.len()).find_map(|at| {
        let first = parts.get(at)?;
        let found = compact(first).or_else(|| match parts.get(at..at + 3)? {
            [a, b, c] => numeric(a, b, c, order).or_else(|| named(a, b, c)),
            _ => None,
        });
        Some((text.get(..first.start)?, found?))
    })
}

/// A number or a word, and the last punctuation mark before it.
#[derive(Debug, Clone, Copy)]
struct Part<'t> {
    text: &'t str,
    before: char,
    /// Where it starts.
    start: usize,
}

impl Part<'_> {
    /// Its value, if it is a number with this many digits.
    fn number(&self, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
        let is_number = self.text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && digits.contains(&self.text.len())).then(|| self.text.parse().ok())?
    }

    fn year(&self) -> Option<u32> {
        self.number(4..=4).filter(|year| YEARS.contains(year))
    }

    /// `17`, `17th`, `1er`.
    fn day(&self) -> Option<u32> {
        let digits = self.text.trim_end_matches(|c: char| c.is_alphabetic());
        let is_short = self.text.chars().count() <= digits.len() + 2;
        Part { text: digits, ..*self }.number(1..=2).filter(|_| is_short)
    }

    fn month(&self) -> Option<u32> {
        let name: String =
            self.text.chars().take(MAX_MONTH_CHARS + 1).flat_map(char::to_lowercase).collect();
        if name.chars().count() > MAX_MONTH_CHARS || name.starts_with(|c: char| c.is_ascii_digit())
        {
            return None;
        }
        // The longest matching prefix: `juil` before `jui`, `marras` before `mar`.
        let fits = MONTHS.iter().filter(|(beginning, _)| name.starts_with(beginning));
        fits.max_by_key(|(beginning, _)| beginning.len()).map(|(_, month)| *month)
    }
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let is_gap = |c: char| !c.is_alphanumeric() || is_cjk_mark(c);
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(|c| !is_gap(c))?;
        let (gap, from_part) = rest.split_at_checked(start)?;
        let end = from_part.find(is_gap).unwrap_or(from_part.len());
        let (part, after) = from_part.split_at_checked(end)?;
        let start = text.len() - from_part.len();
        rest = after;
        let before = gap.trim_end().chars().next_back().unwrap_or(' ');
        Some(Part { text: part, before, start })
    })
}

fn is_cjk_mark(c: char) -> bool {
    matches!(c, '年' | '月' | '日' | '년' | '월' | '일')
}

fn is_link_word(part: &Part<'_>) -> bool {
    matches!(part.text, "de" | "of" | "del" | "en" | "da")
}

/// `2024-05-17`, `17.05.2024`, `5/17/2024`.
fn numeric(a: &Part<'_>, b: &Part<'_>, c: &Part<'_>, order: Order) -> Option<String> {
    let is_separated = is_cjk_mark(b.before) && is_cjk_mark(c.before)
        || matches!(b.before, '-' | '/' | '.') && b.before == c.before;
    if !is_separated {
        return None;
    }
    let small = |part: &Part<'_>| part.number(1..=2);
    if let Some(year) = a.year() {
        // The time may follow the day without a space: `2024-05-17T08`.
        let day = small(c).or_else(|| {
            let digits = c.text.split(['T', 't']).next()?;
            Part { text: digits, ..*c }.number(2..=2)
        })?;
        return date(year, small(b)?, day);
    }
    let first = small(a)?;
    let second = small(b)?;
    let year = c.year()?;
    let is_month_first =
        second > 12 || (first <= 12 && b.before == '/' && order == Order::MonthFirst);
    if is_month_first { date(year, first, second) } else { date(year, second, first) }
}

/// `May 17, 2024`, `17 May 2024`, `2024 May 17`.
fn named(a: &Part<'_>, b: &Part<'_>, c: &Part<'_>) -> Option<String> {
    if let (Some(day), Some(year)) = (a.day(), c.year()) {
        return date(year, b.month()?, day);
    }
    if let (Some(day), Some(year)) = (b.day(), c.year()) {
        return date(year, a.month()?, day);
    }
    date(a.year()?, b.month()?, c.day()?)
}

/// `20240517`, optionally followed by the digits of a time.
fn compact(part: &Part<'_>) -> Option<String> {
    let text = part.text;
    let is_whole = matches!(text.len(), 8 | 14) || text.get(8..9).is_some_and(|t| t == "T");
    if !is_whole || !text.get(..8)?.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse().ok();
    date(number(0, 4)?, number(4, 6)?, number(6, 8)?)
}

fn date(year: u32, month: u32, day: u32) -> Option<String> {
    let days = match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let is_real = YEARS.contains(&year) && (1..=days).contains(&day);
    is_real.then(|| format!("{year:04}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_forms_are_read() {
        for text in [
            "2024-05-17",
            "2024-05-17T08:30:00+02:00",
            "2024/5/17",
            "20240517",
            "20240517T0830",
            "17.05.2024",
            "Fri, 17 May 2024 08:30:00 GMT",
            "Fri May 17 2024 08:30",
            "Published on May 17th, 2024 by Ada",
            "17 mai 2024 à 8h",
            "17. Mai 2024",
            "el 17 de mayo de 2024",
            "17 мая 2024",
            "2024年5月17日",
            "2024년 5월 17일",
            "5/17/2024",
            "Room 12, 5/17/2024",
        ] {
            assert_eq!(find(text, Order::MonthFirst).as_deref(), Some("2024-05-17"), "{text}");
        }
        assert_eq!(find("5/6/2024", Order::MonthFirst).as_deref(), Some("2024-05-06"));
        assert_eq!(find("5/6/2024", Order::DayFirst).as_deref(), Some("2024-06-05"));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "2024",
            "May 2024",
            "1/2",
            "31.04.2024",
            "0000-00-00",
            "12345678",
            "1850-01-01",
            "version 1.2.3",
            "2024-13-01",
            "16 oz 2024",
        ] {
            assert_eq!(find(text, Order::MonthFirst), None, "{text}");
        }
    }
}

//! Publication dates, in the formats that feeds use.

use fetchwell_policy::time::Time;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use jiff::{Timestamp, civil};

/// The names of the months and of the days of the week begin with these.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Time zones with a name, in hours from UTC: those of North America and their short forms, UTC, and those of Central
/// Europe. Most other abbreviations are ambiguous.
#[rustfmt::skip]
const ZONES: [(&str, i8); 25] = [
    ("z", 0), ("ut", 0), ("utc", 0), ("gmt", 0),
    ("ast", -4), ("adt", -3),
    ("et", -5), ("est", -5), ("edt", -4),
    ("ct", -6), ("cst", -6), ("cdt", -5),
    ("mt", -7), ("mst", -7), ("mdt", -6),
    ("pt", -8), ("pst", -8), ("pdt", -7),
    ("akst", -9), ("akdt", -8), ("hst", -10),
    ("cet", 1), ("met", 1), ("cest", 2), ("mest", 2),
];

/// Reads a date. RSS uses the date format of mail (RFC 822), all others RFC 3339, and many feeds something similar. A
/// date without a time means its midnight, and a time without a known zone is UTC.
pub fn read(text: &str) -> Option<Time> {
    let text = text.trim();
    let moment = text.parse::<Timestamp>().ok().or_else(|| Parts::read(text)?.moment())?;
    Some(Time::from_micros(moment.as_microsecond()))
}

/// The parts of a date, in whatever order they come.
#[derive(Default)]
struct Parts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    time: Option<civil::Time>,
    offset: Option<Offset>,
}

impl Parts {
    /// Reads the words of a date; `None` if one of them does not belong to a date.
    fn read(text: &str) -> Option<Parts> {
        let mut parts = Parts::default();
        let is_gap = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')');
        for word in text.split(is_gap).filter(|word| !word.is_empty()) {
            parts.add(word)?;
        }
        Some(parts)
    }

    fn add(&mut self, word: &str) -> Option<()> {
        let begins_with_digit = word.starts_with(|c: char| c.is_ascii_digit());
        if let Some(pieces) = date(word) {
            self.add_date(pieces.date());
            // `2023-11-15` is a date without a time, which may follow.
            self.time = pieces.time().or(self.time);
            self.offset = pieces.to_numeric_offset().or(self.offset);
        } else if word.starts_with(['+', '-']) {
            self.offset = Some(offset(word)?);
        } else if !begins_with_digit {
            // `GMT+1`
            let end = word.find(['+', '-']).unwrap_or(word.len());
            let (name, offset) = word.split_at_checked(end)?;
            // `p.m.`
            self.add_name(&name.to_ascii_lowercase().replace('.', ""))?;
            if !offset.is_empty() {
                self.add(offset)?;
            }
        } else if word.contains(':') {
            self.add_time(word)?;
        } else if word.contains('-') {
            // `15-Nov-23`
            word.split('-').try_for_each(|part| self.add(part))?;
        } else {
            self.add_number(word)?;
        }
        Some(())
    }

    fn add_date(&mut self, date: civil::Date) {
        self.year = Some(date.year());
        self.month = Some(date.month());
        self.day = Some(date.day());
    }

    /// `12:00`, `12:00:00.5`, and a zone right after it: `12:00:00+01:00`, `12:00Z`.
    fn add_time(&mut self, word: &str) -> Option<()> {
        let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.');
        let end = word.find(|c| !is_time(c)).unwrap_or(word.len());
        let (time, zone) = word.split_at_checked(end)?;
        let mut numbers = time.split(':');
        let mut number = || numbers.next()?.split('.').next()?.parse::<i8>().ok();
        let hour = number()?;
        let minute = number()?;
        let second = match number() {
            Some(60) => 59, // a leap second
            second => second.unwrap_or(0),
        };
        if numbers.next().is_some() {
            return None;
        }
        self.time = Some(civil::Time::new(hour, minute, second, 0).ok()?);
        if zone.is_empty() { Some(()) } else { self.add(zone) }
    }

    /// The day comes before a year of two digits.
    fn add_number(&mut self, word: &str) -> Option<()> {
        let number: i16 = word.parse().ok()?;
        if word.len() <= 2 && self.day.is_none() {
            self.day = i8::try_from(number).ok();
        } else if self.year.is_none() {
            self.year = Some(match (word.len(), number) {
                (2, 0..50) => 2000 + number,
                (2, _) => 1900 + number,
                (4, _) => number,
                _ => return None,
            });
        }
        Some(())
    }

    fn add_name(&mut self, name: &str) -> Option<()> {
        let begins_with = |start: &&str| name.starts_with(*start);
        if let Some((_, hours)) = ZONES.iter().find(|(zone, _)| *zone == name) {
            self.offset = self.offset.or(Some(Offset::constant(*hours)));
        } else if let Some((month, _)) = (1..).zip(MONTHS).find(|(_, month)| begins_with(month)) {
            self.month = Some(month);
        } else if let Some(time) = self.time {
            // Any other word after the time is a zone that is not known.
            let hour = match name {
                "am" => time.hour() % 12,
                "pm" => time.hour() % 12 + 12,
                _ => time.hour(),
            };
            self.time = time.with().hour(hour).build().ok();
        } else if name != "at" && !DAYS.iter().any(begins_with) {
            return None;
        }
        Some(())
    }

    fn moment(&self) -> Option<Timestamp> {
        let date = civil::Date::new(self.year?, self.month?, self.day?).ok()?;
        let time = self.time.unwrap_or_else(civil::Time::midnight);
        self.offset.unwrap_or(Offset::UTC).to_timestamp(date.to_datetime(time)).ok()
    }
}

/// A date, with or without a time and an offset: `2023-11-15T12:00:00`, `2023/11/15`, `2023-11`.
fn date(word: &str) -> Option<Pieces<'static>> {
    let date = word.replace('/', "-");
    let date = if date.len() == 7 { format!("{date}-01") } else { date };
    Some(Pieces::parse(&date).ok()?.into_owned())
}

/// `+0100`, `+01:00`, `-5`.
fn offset(word: &str) -> Option<Offset> {
    let digits = word.get(1..)?.replace(':', "");
    let number: i32 = digits.parse().ok().filter(|_| digits.len() <= 4)?;
    let minutes = if digits.len() <= 2 { number * 60 } else { number / 100 * 60 + number % 100 };
    let sign = if word.starts_with('-') { -1 } else { 1 };
    Offset::from_seconds(sign * minutes * 60).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOON: Time = Time::from_secs(1_700_049_600);
    const MIDNIGHT: Time = Time::from_secs(1_700_006_400);

    /// The names of the tables say where the expectations come from. feedparser is what most Python programs read feeds
    /// with; these are cases of its `tests/test_date_parsers.py` on another day.
    #[test]
    fn dates_are_read_as_feeds_write_them() {
        let rfc_822 = [
            ("Wed, 15 Nov 2023 12:00:00 GMT", NOON),
            ("15 Nov 23 12:00 UT", NOON),
            ("15 Nov 2023 12:00:00 Z", NOON),
            ("15 Nov 2023 07:00:00 EST", NOON),
            ("15 Nov 2023 08:00:00 EDT", NOON),
            ("15 Nov 2023 06:00:00 CST", NOON),
            ("15 Nov 2023 05:00:00 MST", NOON),
            ("15 Nov 2023 04:00:00 PST", NOON),
            ("15 Nov 2023 05:00:00 PDT", NOON),
            ("Wed, 15 Nov 2023 12:00:00 +0000 (UTC)", NOON),
        ];
        let rfc_3339 = [
            ("2023-11-15T12:00:00Z", NOON),
            (" 2023-11-15T13:00:00.000+01:00\n", NOON),
            ("2023-11-15 12:00:00Z", NOON),
        ];
        let feedparser = [
            ("Wed, 15 Nov 2023 10:59:00 -01:01", NOON),
            ("Wed, 15 Nov 2023 10:59:00 GMT-01:01", NOON),
            ("Wed, 15 Nov 2023 12:00:00 Etc/GMT", NOON),
            ("Wed, 15 Nov 2023 13:00:00 MET", NOON),
            ("Wed, 15 November 2023 07:00:00 ET", NOON),
            ("Wed, 15 November 2023 04:00:00 PT", NOON),
            ("Wed, 15 Nov, 2023 12:00:00 UTC", NOON),
            ("Wed,  15 Nov 2023 12:00 GMT", NOON),
            ("Wed, 15 Nov 2023", MIDNIGHT),
            ("Wed Nov 15 2023 14:00:00 +0200", NOON),
            ("Wed Nov 15 12:00:00 2023", NOON), // asctime
            ("Wed Nov 15 12:00:00 +0000 2023", NOON),
            ("2023-11-15", MIDNIGHT),
            ("2023-11", Time::from_secs(1_698_796_800)),
            ("2023-11-15 11:40:00 -00:20", NOON),
            ("2023-11-15 12:00:00", NOON),
            ("2023-11-15 12:00:00.0", NOON),
            ("Wed, 2023/11/15 07:00:00 EST", NOON),
        ];
        // Zones of the United States that RFC 822 does not name.
        let zones = [
            ("15 Nov 2023 03:00:00 AKST", NOON),
            ("15 Nov 2023 04:00:00 AKDT", NOON),
            ("15 Nov 2023 02:00:00 HST", NOON),
        ];
        let lenient = [
            ("Mon, 15 Nov 2023 12:00:00 +0000", NOON), // a wrong day of the week
            ("Wednesday, 15 Nov 2023 12:00:00 GMT", NOON),
            ("Wednesday, 15-Nov-23 12:00:00 GMT", NOON), // RFC 850
            ("2023-11-15T12:00:00", NOON),
            ("2023-11-15 13:00:00 +01", NOON),
            ("Nov 15, 2023 7:00 AM EST", NOON),
            ("Nov 15, 2023 12:00 PM", NOON),
            ("Nov 15, 2023 12:00 am", MIDNIGHT),
            ("November 15, 2023 at 12:00 PM", NOON),
            ("Nov 15, 2023 12:00 p.m.", NOON),
            ("Wed, 2023-11-15T13:00:00+01:00", NOON),
            ("2023/11/15T13:00:00+01:00", NOON),
            ("20231115T120000", NOON),
            ("Wed, 15 Nov 2023 12:00:00 XYZ", NOON), // an unknown zone
            ("Wed, 15 Nov 2023 11:59:60 GMT", NOON - Duration::from_secs(1)),
        ];
        let documented = rfc_822.into_iter().chain(rfc_3339);
        for (text, time) in documented.chain(feedparser).chain(zones).chain(lenient) {
            assert_eq!(read(text), Some(time), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        let feedparser = [
            "",
            "Wed, 15 Nov 2023 1:2:3:4 GMT",
            "Wed, 15 zzz 2023 12:00:00 GMT",
            "Wed, Nov x 2023 12:00:00 GMT",
            "Wed, 15 Nov zz 12:00:00 GMT",
            "Wed, 15 Nov 2023 12:00:00 +zz:00",
            "Wed, 15 Nov 2023 12:00:00 +00:zz",
            "Wed, 99 Nov 2023 12:00:00 GMT",
            "9999-12-31T23:59:59-99:99",
            "2023-11-15T25:00:00Z",
            "2023-11-15T12:61:00Z",
            "2023-11-15T12:00:61Z",
            "2023-11-15-01",
            "2023-11-15T12:00:00-06:00Textra",
            "2023-xx-15",
        ];
        let others =
            ["yesterday", "12:00", "Nov 2023", "last seen on 15 Nov 2023", "+", "+é", "2023"];
        for text in feedparser.into_iter().chain(others) {
            assert_eq!(read(text), None, "{text}");
        }
    }
}

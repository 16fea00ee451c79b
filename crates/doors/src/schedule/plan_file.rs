//! The plan file: YAML or TOML, a list of entries.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_policy::units::{UnitError, parse_duration};
use fetchwell_policy::url::{UrlFault, WebUrl};
use jiff::Timestamp;
use serde::Deserialize;
use thiserror::Error;

use super::entry::{EntryKind, ScheduleEntry};

const MAX_PLAN_BYTES: u64 = 16 << 20;
const MAX_ENTRIES: usize = 100_000;
/// The range of intervals. Rounds are remembered for longer than the longest of them.
const LEAST_EVERY: Duration = Duration::from_secs(1);
const MOST_EVERY: Duration = Duration::from_secs(366 * 86_400);
/// Problems reported in one message.
const MAX_FAULTS_TOLD: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    entries: Vec<RawEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    url: Option<String>,
    sitemap: Option<String>,
    every: String,
    jitter: Option<RawJitter>,
    start: Option<RawStart>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawJitter {
    Share(f64),
    Span(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawStart {
    Text(String),
    Toml(toml_edit::Datetime),
}

/// Why a plan file cannot be used: the file, the place in it, and how to fix it.
#[derive(Debug, Error)]
#[error("plan {}: {problem}", .path.display())]
pub struct PlanFileError {
    path: PathBuf,
    #[source]
    problem: PlanProblem,
}

#[derive(Debug, Error)]
enum PlanProblem {
    #[error("cannot read it: {0}; check --plan")]
    Unreadable(#[source] io::Error),
    #[error(
        "it is larger than {} MiB; split it, and run one process per part",
        MAX_PLAN_BYTES >> 20
    )]
    TooLarge,
    #[error("its name must end in .yaml or .toml")]
    Extension,
    #[error(transparent)]
    Toml(Box<toml_edit::de::Error>),
    #[error(transparent)]
    Yaml(Box<serde_saphyr::Error>),
    #[error("it has {0} entries; the maximum is {MAX_ENTRIES}, so split it")]
    TooManyEntries(usize),
    /// Every entry that is wrong, not only the first.
    #[error("{}", listed(.0))]
    Entries(Vec<EntryError>),
}

fn listed(errors: &[EntryError]) -> String {
    let mut lines: Vec<String> =
        errors.iter().take(MAX_FAULTS_TOLD).map(ToString::to_string).collect();
    let more = errors.len() - lines.len();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n    ")
}

#[derive(Debug, Error)]
#[error("entry {place} ({}): {problem}", .name.escape_debug())]
struct EntryError {
    /// From 1.
    place: usize,
    /// The URL as it was written.
    name: String,
    #[source]
    problem: EntryProblem,
}

#[derive(Debug, Error)]
enum EntryProblem {
    #[error("it has both url and sitemap; make it two entries")]
    BothAddresses,
    #[error("it has neither url nor sitemap; set one of them")]
    NoAddress,
    #[error("{}: {source}", .kind.as_str())]
    Url { kind: EntryKind, source: UrlFault },
    #[error("it is the same as entry {0}; remove one of them")]
    SameAs(usize),
    #[error("{key}: {source}")]
    Duration { key: &'static str, source: UnitError },
    #[error("every: {0} is out of range; use 1s to 366d")]
    EveryOutOfRange(String),
    #[error("jitter: {0} is out of range; use a number from 0 to 1, or a duration such as 5m")]
    JitterOutOfRange(f64),
    #[error("jitter: {0} is longer than every; make it shorter")]
    JitterTooLong(String),
    #[error("start: {text:?} is not an RFC 3339 time; use one such as 2026-11-15T06:00:00Z")]
    StartNotATime { text: String, source: jiff::Error },
    #[error("start: {0} is before 1970; use a later time")]
    StartTooEarly(String),
}

pub fn read(path: &Path) -> Result<Vec<ScheduleEntry>, PlanFileError> {
    let fault = |problem: PlanProblem| PlanFileError { path: path.to_owned(), problem };
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_PLAN_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| fault(PlanProblem::Unreadable(error)))?;
    if text.len() as u64 > MAX_PLAN_BYTES {
        return Err(fault(PlanProblem::TooLarge));
    }
    parse(path, &text).map_err(fault)
}

fn parse(path: &Path, text: &str) -> Result<Vec<ScheduleEntry>, PlanProblem> {
    let extension = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let plan: RawPlan = match extension {
        "toml" => {
            toml_edit::de::from_str(text).map_err(|error| PlanProblem::Toml(Box::new(error)))?
        }
        "yaml" | "yml" => {
            serde_saphyr::from_str(text).map_err(|error| PlanProblem::Yaml(Box::new(error)))?
        }
        _ => return Err(PlanProblem::Extension),
    };
    if plan.entries.len() > MAX_ENTRIES {
        return Err(PlanProblem::TooManyEntries(plan.entries.len()));
    }
    judge(plan.entries).map_err(PlanProblem::Entries)
}

fn judge(raw: Vec<RawEntry>) -> Result<Vec<ScheduleEntry>, Vec<EntryError>> {
    let mut entries = Vec::with_capacity(raw.len());
    let mut errors = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, raw) in (1..).zip(raw) {
        let name = raw.url.as_ref().or(raw.sitemap.as_ref()).map_or("", String::as_str).to_owned();
        let judged = entry(raw).and_then(|entry| match places.insert(entry.id(), place) {
            Some(other) => Err(EntryProblem::SameAs(other)),
            None => Ok(entry),
        });
        match judged {
            Ok(entry) => entries.push(entry),
            Err(problem) => errors.push(EntryError { place, name, problem }),
        }
    }
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

fn entry(raw: RawEntry) -> Result<ScheduleEntry, EntryProblem> {
    let (kind, url) = match (raw.url, raw.sitemap) {
        (Some(url), None) => (EntryKind::Url, url),
        (None, Some(url)) => (EntryKind::Sitemap, url),
        (Some(_), Some(_)) => return Err(EntryProblem::BothAddresses),
        (None, None) => return Err(EntryProblem::NoAddress),
    };
    WebUrl::parse(&url).map_err(|source| EntryProblem::Url { kind, source })?;
    let every = duration("every", &raw.every)?;
    if !(LEAST_EVERY..=MOST_EVERY).contains(&every) {
        return Err(EntryProblem::EveryOutOfRange(raw.every));
    }
    let jitter = raw.jitter.map_or(Ok(Duration::ZERO), |jitter| judge_jitter(jitter, every))?;
    let start = raw.start.map(judge_start).transpose()?;
    Ok(ScheduleEntry { kind, url, every, jitter, start })
}

fn duration(key: &'static str, text: &str) -> Result<Duration, EntryProblem> {
    parse_duration(text).map_err(|source| EntryProblem::Duration { key, source })
}

fn judge_jitter(raw: RawJitter, every: Duration) -> Result<Duration, EntryProblem> {
    match raw {
        RawJitter::Share(share) if (0.0..=1.0).contains(&share) => Ok(every.mul_f64(share)),
        RawJitter::Share(share) => Err(EntryProblem::JitterOutOfRange(share)),
        RawJitter::Span(text) => match duration("jitter", &text)? {
            span if span <= every => Ok(span),
            _ => Err(EntryProblem::JitterTooLong(text)),
        },
    }
}

fn judge_start(raw: RawStart) -> Result<Time, EntryProblem> {
    let text = match raw {
        RawStart::Text(text) => text,
        RawStart::Toml(datetime) => datetime.to_string(),
    };
    let start: Timestamp = match text.parse() {
        Ok(start) => start,
        Err(source) => return Err(EntryProblem::StartNotATime { text, source }),
    };
    match start.as_microsecond() {
        micros @ 0.. => Ok(Time::from_micros(micros)),
        _ => Err(EntryProblem::StartTooEarly(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> Result<Vec<ScheduleEntry>, PlanProblem> {
        parse(Path::new("plan.yaml"), text)
    }

    fn toml(text: &str) -> Result<Vec<ScheduleEntry>, PlanProblem> {
        parse(Path::new("plan.toml"), text)
    }

    #[test]
    fn both_forms_say_the_same() {
        let from_yaml = yaml(
            "entries:\n  - url: http://a.test/x  # often\n    every: 10m\n    jitter: 0.5\n  \
             - sitemap: https://b.test/sitemap.xml\n    every: 1d\n    jitter: 1h\n    \
             start: 2026-11-15T06:00:00Z\n",
        );
        let from_toml = toml(
            "[[entries]]\nurl = 'http://a.test/x'\nevery = '10m'\njitter = 0.5\n\
             [[entries]]\nsitemap = 'https://b.test/sitemap.xml'\nevery = '1d'\njitter = '1h'\n\
             start = 2026-11-15T06:00:00Z\n",
        );
        let entries = from_yaml.unwrap();
        assert_eq!(entries, from_toml.unwrap());
        let [page, sitemap] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!((page.kind, page.url.as_str()), (EntryKind::Url, "http://a.test/x"));
        assert_eq!((page.every, page.jitter), (Duration::from_secs(600), Duration::from_secs(300)));
        assert_eq!(sitemap.start, Some(Time::from_secs(1_794_722_400)));
        assert_eq!(yaml("entries: []").unwrap(), []);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let of = |rest: &str| format!("entries:\n  - {rest}\n");
        for (text, said) in [
            (of("{url: 'http://a.test/', every: 10}"), "no unit"),
            (of("{url: 'http://a.test/', every: [1h]}"), "string"),
            (of("{url: 'http://a.test/', every: '10'}"), "entry 1 (http://a.test/): every"),
            (of("{url: 'http://a.test/', every: 10ms}"), "out of range"),
            (of("{url: 'http://a.test/', every: 400d}"), "out of range"),
            (of("{url: 'http://a.test/'}"), "every"),
            (of("{every: 1h}"), "neither url nor sitemap"),
            (of("{url: 'http://a.test/', sitemap: 'http://a.test/', every: 1h}"), "both"),
            (of("{url: 'gopher://a.test/', every: 1h}"), "entry 1 (gopher://a.test/): url"),
            (of("{url: 'http://a.test/', every: 1h, queue: q}"), "queue"),
            (of("{url: 'http://a.test/', every: 1h, jitter: 2}"), "0 to 1"),
            (of("{url: 'http://a.test/', every: 1h, jitter: 2h}"), "longer than every"),
            (of("{url: 'http://a.test/', every: 1h, start: soon}"), "RFC 3339"),
            (of("{url: 'http://a.test/', every: 1h, start: '1960-01-01T00:00:00Z'}"), "1970"),
            (of("{url: u, every: 1h}\n  - {url: v, every: 1h}"), "entry 2 (v)"),
            ("entries:\n  - {url: x, every: [}\n".to_owned(), "line"),
            ("entry: []\n".to_owned(), "entry"),
            ("- {url: 'http://a.test/', every: 1h}\n".to_owned(), "expected"),
            (String::new(), "line 1"),
        ] {
            let problem = yaml(&text).unwrap_err().to_string();
            assert!(problem.contains(said), "{text}\n{problem}");
        }
        let twice =
            of("{url: 'http://a.test/', every: 1h}\n  - {url: 'http://a.test/', every: 2h}");
        assert!(yaml(&twice).unwrap_err().to_string().contains("entry 2"), "{twice}");
        assert!(toml("[[entries]]\nurl = 3\n").unwrap_err().to_string().contains("line 2"));
        let unnamed = parse(Path::new("plan.txt"), "").unwrap_err();
        assert!(matches!(unnamed, PlanProblem::Extension), "{unnamed}");
    }

    #[test]
    fn a_bomb_of_aliases_does_not_go_off() {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (from, to) in ('a'..'i').zip('b'..='i') {
            let aliases = vec![format!("*{from}"); 10].join(", ");
            text.push_str(&format!("{to}: &{to} [{aliases}]\n"));
        }
        text.push_str("entries: *i\n");
        assert!(yaml(&text).is_err());
    }
}

//! Selects captured pages.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::line::CdxLine;
use super::peek::Peek;
use crate::line::number;

/// The conditions that a page must meet; `None` accepts any value. A page without the field is rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexFilter {
    /// The HTTP status.
    pub status: Option<u16>,
    /// A language of the page.
    pub language: Option<Language>,
    /// The media type that the site sent, case-insensitive.
    pub mime: Option<String>,
    /// A prefix of the page's URL.
    pub url_prefix: Option<String>,
    /// The length of the compressed record.
    pub length_bytes: Option<RangeInclusive<u64>>,
}

/// A language in the notation of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Language {
    /// A three-letter code of ISO 639-3: `eng`.
    pub code: String,
    /// The required position in the page's list (`zho,eng`).
    pub place: LanguagePlace,
}

/// The position of a language in the list of a page. The language of most of the page comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanguagePlace {
    /// Anywhere.
    Any,
    /// First.
    Primary,
}

/// The criteria of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// [`IndexFilter::status`]
    Status,
    /// [`IndexFilter::language`]
    Language,
    /// [`IndexFilter::mime`]
    Mime,
    /// [`IndexFilter::url_prefix`]
    UrlPrefix,
    /// [`IndexFilter::length_bytes`]
    Length,
}

impl Criterion {
    /// All of them, in the order in which they are checked.
    pub const ALL: [Criterion; 5] = [
        Criterion::Status,
        Criterion::Language,
        Criterion::Mime,
        Criterion::UrlPrefix,
        Criterion::Length,
    ];

    /// The name that users know.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Criterion::Status => "status",
            Criterion::Language => "language",
            Criterion::Mime => "mime",
            Criterion::UrlPrefix => "url_prefix",
            Criterion::Length => "length",
        }
    }
}

impl IndexFilter {
    /// Why a line is rejected: the first criterion that it fails.
    #[must_use]
    pub fn rejection(&self, line: &CdxLine<'_>) -> Option<Criterion> {
        self.first_failure(|field, passes| {
            !line.get(field.name).is_some_and(|value| passes(value.as_bytes()))
        })
    }

    /// A criterion that a line certainly fails, found without parsing it. This is much faster than parsing, and never
    /// wrong about a valid line. `None` if the input does not look like a line.
    #[must_use]
    pub fn rejection_unread(&self, line: &[u8]) -> Option<Criterion> {
        let peek = Peek::of(line)?;
        self.first_failure(|field, passes| peek.fails(&field.quoted, passes))
    }

    /// The first criterion that fails; `field_fails` applies a test to the value of a field.
    fn first_failure(
        &self,
        field_fails: impl Fn(&Field, &dyn Fn(&[u8]) -> bool) -> bool,
    ) -> Option<Criterion> {
        Criterion::ALL.into_iter().find(|criterion| self.fails(*criterion, &field_fails))
    }

    fn fails(
        &self,
        criterion: Criterion,
        field_fails: impl Fn(&Field, &dyn Fn(&[u8]) -> bool) -> bool,
    ) -> bool {
        let Fields { status, languages, mime, url, length } = &*FIELDS;
        match criterion {
            Criterion::Status => self.status.is_some_and(|wanted| {
                field_fails(status, &|value| number(value) == Some(u64::from(wanted)))
            }),
            Criterion::Language => self
                .language
                .as_ref()
                .is_some_and(|wanted| field_fails(languages, &|value| wanted.is_among(value))),
            Criterion::Mime => self.mime.as_ref().is_some_and(|wanted| {
                field_fails(mime, &|value| value.eq_ignore_ascii_case(wanted.as_bytes()))
            }),
            Criterion::UrlPrefix => self.url_prefix.as_ref().is_some_and(|prefix| {
                field_fails(url, &|value| value.starts_with(prefix.as_bytes()))
            }),
            Criterion::Length => self.length_bytes.as_ref().is_some_and(|wanted| {
                field_fails(length, &|value| number(value).is_some_and(|n| wanted.contains(&n)))
            }),
        }
    }
}

impl Language {
    /// This language at any position.
    #[must_use]
    pub fn any(code: impl Into<String>) -> Language {
        Language { code: code.into(), place: LanguagePlace::Any }
    }

    /// Whether it is one of these codes, as a whole word.
    fn is_among(&self, codes: &[u8]) -> bool {
        let wanted = self.code.as_bytes();
        let mut codes = codes.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        match self.place {
            LanguagePlace::Any => codes.any(|code| code == wanted),
            LanguagePlace::Primary => codes.next() == Some(wanted),
        }
    }
}

/// A field that a filter checks.
struct Field {
    name: &'static str,
    quoted: Finder<'static>,
}

struct Fields {
    status: Field,
    languages: Field,
    mime: Field,
    url: Field,
    length: Field,
}

static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let field = |name, quoted: &'static str| Field { name, quoted: Finder::new(quoted) };
    Fields {
        status: field("status", "\"status\""),
        languages: field("languages", "\"languages\""),
        mime: field("mime", "\"mime\""),
        url: field("url", "\"url\""),
        length: field("length", "\"length\""),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"com,example)/a 20240712000102 {"url": "https://example.com/a", "mime": "text/html", "mime-detected": "x/y", "status": "200", "length": "1023", "languages": "zho,eng"}"#;

    fn wants(filter: &IndexFilter, line: &str) -> bool {
        let wanted = filter.rejection(&CdxLine::parse(line.as_bytes()).unwrap()).is_none();
        assert!(
            !wanted || filter.rejection_unread(line.as_bytes()).is_none(),
            "{filter:?} loses {line}"
        );
        wanted
    }

    #[test]
    fn each_criterion_is_asked_for() {
        let primary = |code: &str| Language { code: code.into(), place: LanguagePlace::Primary };
        let language =
            |language| IndexFilter { language: Some(language), ..IndexFilter::default() };
        let mime = |mime: &str| IndexFilter { mime: Some(mime.into()), ..IndexFilter::default() };
        let url = |prefix: &str| IndexFilter {
            url_prefix: Some(prefix.into()),
            ..IndexFilter::default()
        };
        let status = |status| IndexFilter { status: Some(status), ..IndexFilter::default() };
        let length = |range| IndexFilter { length_bytes: Some(range), ..IndexFilter::default() };
        for (filter, want) in [
            (IndexFilter::default(), true),
            (status(200), true),
            (status(404), false),
            (language(Language::any("eng")), true),
            (language(Language::any("zho")), true),
            (language(Language::any("en")), false),
            (language(Language::any("zho,eng")), false),
            (language(Language::any("")), false),
            (language(primary("zho")), true),
            (language(primary("eng")), false),
            (mime("TEXT/HTML"), true),
            (mime("x/y"), false),
            (url("https://example.com/"), true),
            (url("http://"), false),
            (length(1_023..=1_023), true),
            (length(0..=1_022), false),
        ] {
            assert_eq!(wants(&filter, LINE), want, "{filter:?}");
            let is_open = filter == IndexFilter::default();
            assert_eq!(wants(&filter, "a 20240712000102 {}"), is_open, "{filter:?}");
            let unread = filter.rejection_unread(LINE.as_bytes());
            assert_eq!(unread.is_some(), !want, "{filter:?}: it is plain");
            assert_eq!(unread, filter.rejection(&CdxLine::parse(LINE.as_bytes()).unwrap()));
        }
    }
}

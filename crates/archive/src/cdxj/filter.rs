//! Which captured pages are wanted.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::line::Line;
use super::peek::Peek;
use crate::line::number;

/// What must be so of a page; what is not given does not matter. A page that does not say is not
/// wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The status with which the site answered.
    pub status: Option<u16>,
    /// A language of the page.
    pub language: Option<Language>,
    /// The media type that the site gave, in any case.
    pub mime: Option<String>,
    /// What the page's own address begins with.
    pub url_prefix: Option<String>,
    /// How long its record is, compressed.
    pub length_bytes: Option<RangeInclusive<u64>>,
}

/// A language as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Language {
    /// Three letters, by ISO 639-3: `eng`.
    pub code: String,
    /// Where in the page's list (`zho,eng`) it must stand.
    pub place: LanguagePlace,
}

/// Where a language stands among those of a page. The one that most of the page is in comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanguagePlace {
    /// Anywhere.
    Any,
    /// First.
    Primary,
}

/// What a filter may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// [`Filter::status`]
    Status,
    /// [`Filter::language`]
    Language,
    /// [`Filter::mime`]
    Mime,
    /// [`Filter::url_prefix`]
    UrlPrefix,
    /// [`Filter::length_bytes`]
    Length,
}

impl Criterion {
    /// All of them, in the order in which they are asked for.
    pub const ALL: [Criterion; 5] = [
        Criterion::Status,
        Criterion::Language,
        Criterion::Mime,
        Criterion::UrlPrefix,
        Criterion::Length,
    ];

    /// Its name, as users know it.
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

impl Filter {
    /// Why the page of a line is not wanted: the first criterion that it does not meet.
    #[must_use]
    pub fn rejection(&self, line: &Line<'_>) -> Option<Criterion> {
        self.first_failure(|field, passes| {
            !line.get(field.name).is_some_and(|value| passes(value.as_bytes()))
        })
    }

    /// A criterion that the page of a line surely does not meet, by the line as it is written. This is
    /// much faster than to read the line, and never wrong about one that can be read. Of what does not look
    /// like a line nothing is said.
    #[must_use]
    pub fn rejection_unread(&self, line: &[u8]) -> Option<Criterion> {
        let peek = Peek::of(line)?;
        self.first_failure(|field, passes| peek.fails(&field.quoted, passes))
    }

    /// What must be so and is not, by one who knows what fields say.
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
    /// This language, anywhere.
    #[must_use]
    pub fn any(code: impl Into<String>) -> Language {
        Language { code: code.into(), place: LanguagePlace::Any }
    }

    /// Whether it is among these codes, as a whole.
    fn is_among(&self, codes: &[u8]) -> bool {
        let wanted = self.code.as_bytes();
        let mut codes = codes.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        match self.place {
            LanguagePlace::Any => codes.any(|code| code == wanted),
            LanguagePlace::Primary => codes.next() == Some(wanted),
        }
    }
}

/// A field that a filter asks for.
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

    fn wants(filter: &Filter, line: &str) -> bool {
        let wanted = filter.rejection(&Line::parse(line.as_bytes()).unwrap()).is_none();
        assert!(
            !wanted || filter.rejection_unread(line.as_bytes()).is_none(),
            "{filter:?} loses {line}"
        );
        wanted
    }

    #[test]
    fn each_criterion_is_asked_for() {
        let primary = |code: &str| Language { code: code.into(), place: LanguagePlace::Primary };
        let language = |language| Filter { language: Some(language), ..Filter::default() };
        let mime = |mime: &str| Filter { mime: Some(mime.into()), ..Filter::default() };
        let url = |prefix: &str| Filter { url_prefix: Some(prefix.into()), ..Filter::default() };
        let status = |status| Filter { status: Some(status), ..Filter::default() };
        let length = |range| Filter { length_bytes: Some(range), ..Filter::default() };
        for (filter, want) in [
            (Filter::default(), true),
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
            let is_open = filter == Filter::default();
            assert_eq!(wants(&filter, "a 20240712000102 {}"), is_open, "{filter:?}");
            let unread = filter.rejection_unread(LINE.as_bytes());
            assert_eq!(unread.is_some(), !want, "{filter:?}: it is plain");
            assert_eq!(unread, filter.rejection(&Line::parse(LINE.as_bytes()).unwrap()));
        }
    }
}

//! Which documents are written.

use super::document::Document;

/// The conditions for a document.
#[derive(Clone, Debug, Default)]
pub struct DocumentFilter {
    pub min_chars: usize,
    pub max_chars: Option<usize>,
    /// The accepted languages, as full codes; empty for any.
    pub languages: Vec<String>,
}

impl DocumentFilter {
    /// The name of the filter that excludes a document, as a metric label.
    pub(super) fn leaves_out(&self, document: &Document) -> Option<&'static str> {
        let chars = document.text.chars().count();
        if chars < self.min_chars {
            return Some("too_short");
        }
        if self.max_chars.is_some_and(|most| chars > most) {
            return Some("too_long");
        }
        let speaks = |code: &String| document.lang.as_deref().is_some_and(|lang| is_in(lang, code));
        let any = self.languages.is_empty() || self.languages.iter().any(speaks);
        (!any).then_some("language")
    }
}

/// `en` matches `en-GB` but not `eng`: indexes use three-letter codes, pages two-letter ones.
fn is_in(lang: &str, code: &str) -> bool {
    let primary = lang.split(['-', '_']).next().unwrap_or_default();
    lang.eq_ignore_ascii_case(code) || primary.eq_ignore_ascii_case(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Part, WarcPlace};

    fn document(text: &str, lang: Option<&str>) -> Document {
        let warc = WarcPlace { filename: "a".to_owned(), offset: 0, length: 1 };
        let url = String::new();
        let surt = String::new();
        let timestamp = String::new();
        let title = String::new();
        let content_hash = String::new();
        let lang = lang.map(str::to_owned);
        let text = text.to_owned();
        let in_hand = Part::default();
        Document { url, surt, timestamp, lang, title, text, content_hash, warc, in_hand }
    }

    #[test]
    fn lengths_count_characters_and_codes_count_whole() {
        let filter = DocumentFilter {
            min_chars: 2,
            max_chars: Some(3),
            languages: vec!["eng".to_owned(), "de".to_owned()],
        };
        for (text, lang, want) in [
            ("ü", Some("eng"), Some("too_short")),
            ("üü", Some("eng"), None),
            ("üüü", Some("ENG"), None),
            ("üüüü", Some("eng"), Some("too_long")),
            ("abc", Some("de-AT"), None),
            ("abc", Some("den"), Some("language")),
            ("abc", Some("en"), Some("language")),
            ("abc", None, Some("language")),
        ] {
            assert_eq!(filter.leaves_out(&document(text, lang)), want, "{text} {lang:?}");
        }
        assert_eq!(DocumentFilter::default().leaves_out(&document("", None)), None);
    }
}

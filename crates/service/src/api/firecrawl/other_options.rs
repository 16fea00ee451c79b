//! Options of Firecrawl that have no effect here. Its clients send some of them with every request, so a value is
//! accepted if it matches what this service does anyway. Any other value is rejected, with the name of the option.

use crate::api::json::Json;

/// An option, which of its values are accepted, and why others are not.
pub(super) struct OtherOption {
    pub(super) name: &'static str,
    accepts: Accepts,
    why: &'static str,
}

/// The values that are accepted. Null always is.
#[derive(Clone, Copy)]
enum Accepts {
    Anything,
    Switch,
    False,
    True,
    Zero,
    EmptyList,
    /// `basic` or `auto`.
    PlainProxy,
    /// A list of `pdf`. A page that turns out to be a PDF is an error.
    PdfParser,
    Nothing,
}

impl OtherOption {
    pub(super) fn check(&self, value: &Json<'_>) -> Result<(), &'static str> {
        let is_accepted = match self.accepts {
            Accepts::Anything => true,
            Accepts::Switch => matches!(value, Json::Bool(_)),
            Accepts::False => *value == Json::Bool(false),
            Accepts::True => *value == Json::Bool(true),
            Accepts::Zero => matches!(value, Json::Number(number) if number.as_f64() == Some(0.0)),
            Accepts::EmptyList => matches!(value, Json::Array(entries) if entries.is_empty()),
            Accepts::PlainProxy => matches!(value.as_str(), Some("basic" | "auto")),
            Accepts::PdfParser => {
                matches!(value, Json::Array(parsers) if parsers.iter().all(is_pdf_parser))
            }
            Accepts::Nothing => false,
        };
        if is_accepted { Ok(()) } else { Err(self.why) }
    }
}

fn is_pdf_parser(parser: &Json<'_>) -> bool {
    let kind = parser.as_object().and_then(|parser| parser.get("type")).unwrap_or(parser);
    kind.as_str() == Some("pdf")
}

const fn other(name: &'static str, accepts: Accepts, why: &'static str) -> OtherOption {
    OtherOption { name, accepts, why }
}

const NO_BROWSER: &str =
    "is not supported: Fetchwell has no browser and runs no JavaScript; remove the option";
const NO_MODEL: &str = "is not supported: Fetchwell uses no language model; remove the option";
const NO_CHOICE: &str =
    "is not supported: Fetchwell sends requests from its own address only; remove the option";
const NOT_BOOLEAN: &str = "must be true or false";
const NEVER: &str = "is not supported; remove the option";

/// The options without effect of a scrape, a batch scrape and a map.
pub(super) const OTHER_OPTIONS: [OtherOption; 33] = [
    other("origin", Accepts::Anything, NEVER),
    other("integration", Accepts::Anything, NEVER),
    // Certificates are always verified.
    other("skipTlsVerification", Accepts::Switch, NOT_BOOLEAN),
    // Advertisements are never loaded.
    other("blockAds", Accepts::Switch, NOT_BOOLEAN),
    other("fastMode", Accepts::Switch, NOT_BOOLEAN),
    other("parsePDF", Accepts::Switch, NOT_BOOLEAN),
    other("useIndex", Accepts::Switch, NOT_BOOLEAN),
    other(
        "removeBase64Images",
        Accepts::True,
        "must be true: embedded images are never part of the Markdown",
    ),
    other(
        "storeInCache",
        Accepts::True,
        "must be true: each result is stored until its retention ends",
    ),
    other(
        "zeroDataRetention",
        Accepts::False,
        "must be false: each result is stored until its retention ends",
    ),
    other(
        "parsers",
        Accepts::PdfParser,
        "must be [] or [\"pdf\"]: Fetchwell reads only HTML and text",
    ),
    other("proxy", Accepts::PlainProxy, "must be \"auto\" or \"basic\": Fetchwell uses no proxies"),
    other("location", Accepts::Nothing, NO_CHOICE),
    other("mobile", Accepts::False, NO_BROWSER),
    other("waitFor", Accepts::Zero, NO_BROWSER),
    other("actions", Accepts::EmptyList, NO_BROWSER),
    other("profile", Accepts::Nothing, NO_BROWSER),
    other("sessionId", Accepts::Nothing, NO_BROWSER),
    other("extract", Accepts::Nothing, NO_MODEL),
    other("jsonOptions", Accepts::Nothing, NO_MODEL),
    other("agent", Accepts::Nothing, NO_MODEL),
    other("onlyCleanContent", Accepts::False, NO_MODEL),
    other("redactPII", Accepts::False, NO_MODEL),
    other("checkPromptInjection", Accepts::False, NO_MODEL),
    other(
        "changeTrackingOptions",
        Accepts::Nothing,
        "is not supported: Fetchwell does not track changes; remove the option",
    ),
    other(
        "minAge",
        Accepts::Nothing,
        "is not supported: use maxAge, or read the result of an earlier message",
    ),
    other(
        "lockdown",
        Accepts::False,
        "must be false: to read stored pages only, use GET /messages/{id}",
    ),
    other("threatProtection", Accepts::Nothing, NEVER),
    other("auditMetadata", Accepts::Nothing, NEVER),
    other("useMock", Accepts::Nothing, NEVER),
    other(
        "webhook",
        Accepts::Nothing,
        "is not supported: the webhooks of Fetchwell have another format; poll the batch, or send it to POST \
         /fetch/batch with callback_url",
    ),
    other(
        "appendToId",
        Accepts::Nothing,
        "is not supported: a batch cannot be extended; send another one",
    ),
    other(
        "maxConcurrency",
        Accepts::Nothing,
        "is not supported: the pace of each site limits the concurrency; remove the option",
    ),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn default_options_of_the_clients_are_accepted_and_others_rejected() {
        for (name, value, is_accepted) in [
            ("origin", json!("js-sdk@4.42.0"), true),
            ("integration", json!("x"), true),
            ("skipTlsVerification", json!(true), true),
            ("skipTlsVerification", json!("yes"), false),
            ("removeBase64Images", json!(true), true),
            ("removeBase64Images", json!(false), false),
            ("blockAds", json!(false), true),
            ("fastMode", json!(false), true),
            ("storeInCache", json!(true), true),
            ("storeInCache", json!(false), false),
            ("parsers", json!([]), true),
            ("parsers", json!(["pdf"]), true),
            ("parsers", json!([{"type": "pdf", "maxPages": 3}]), true),
            ("parsers", json!(["docx"]), false),
            ("proxy", json!("auto"), true),
            ("proxy", json!("stealth"), false),
            ("mobile", json!(false), true),
            ("mobile", json!(true), false),
            ("waitFor", json!(0), true),
            ("waitFor", json!(1), false),
            ("actions", json!([]), true),
            ("actions", json!([{"type": "wait"}]), false),
            ("location", json!({"country": "DE"}), false),
            ("webhook", json!("https://a.test/"), false),
        ] {
            let option = OTHER_OPTIONS.iter().find(|option| option.name == name).unwrap();
            let text = value.to_string();
            let checked = option.check(&serde_json::from_str(&text).unwrap());
            assert_eq!(checked.is_ok(), is_accepted, "{name} {value}");
        }
    }

    #[test]
    fn each_option_is_named_once() {
        let mut names: Vec<_> = OTHER_OPTIONS.iter().map(|option| option.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OTHER_OPTIONS.len());
    }
}

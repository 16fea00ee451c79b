//! The lists in docs/errors.md and docs/differences.md, for the tests that compare each list with the program.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_policy::outcome::{
    AnswerFault, FetchOutcome, NameFault, NetworkFault, Phase, SiteFault, TlsFault, WaitAskedBy,
};
use fetchwell_policy::time::Time;

const ERRORS: &str = include_str!("../../../docs/errors.md");

/// The rows of the table under a heading, as cells without backticks.
pub fn table(heading: &str) -> Vec<Vec<String>> {
    let title = format!("\n## {heading}\n");
    let (_, section) = ERRORS.split_once(&title).unwrap_or_else(|| panic!("no {title}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    section.lines().filter(|line| line.starts_with("| `")).map(cells).collect()
}

/// Asserts that the table lists exactly these.
pub fn lists_exactly<T: Into<String>>(heading: &str, known: impl IntoIterator<Item = T>) {
    let listed: BTreeSet<String> = table(heading).into_iter().map(|row| row[0].clone()).collect();
    let known: BTreeSet<String> = known.into_iter().map(Into::into).collect();
    assert_eq!(listed, known, "docs/errors.md, {heading}");
}

/// One of each kind of request outcome.
pub fn everything_that_happens() -> Vec<FetchOutcome> {
    let names = [
        NameFault::NoSuchName,
        NameFault::NoAddress,
        NameFault::TooManyAddresses,
        NameFault::ServerFailed,
        NameFault::Nonsense,
        NameFault::TimedOut,
        NameFault::NoServer,
    ];
    let handshakes = [
        TlsFault::Expired,
        TlsFault::NotYetValid,
        TlsFault::WrongName,
        TlsFault::UnknownIssuer,
        TlsFault::BadCertificate,
        TlsFault::NotTls,
        TlsFault::Handshake,
    ];
    let networks = [NetworkFault::ConnectRefused, NetworkFault::Reset];
    let networks = networks.into_iter().chain(handshakes.map(NetworkFault::Tls));
    let networks = networks.chain(names.map(NetworkFault::Dns));
    let answers = [
        AnswerFault::NotHttp,
        AnswerFault::TooLarge,
        AnswerFault::Bomb,
        AnswerFault::HeadersTooLarge,
        AnswerFault::BadEncoding,
        AnswerFault::TooManyRedirects,
        AnswerFault::BadRedirect,
        AnswerFault::TooManyFrames,
        AnswerFault::TookTooLong,
    ];
    let mut all = vec![
        FetchOutcome::RobotsDisallow,
        FetchOutcome::Refused("x".to_owned()),
        FetchOutcome::DeadlinePassed,
        FetchOutcome::SiteStayedDown { since: Time::EPOCH, last_failure: None },
        FetchOutcome::ProbesFailed { count: 3, last: SiteFault::Network },
        FetchOutcome::WaitTooLong {
            asked_by: WaitAskedBy::RetryAfter,
            wait: Duration::from_secs(3_600),
            most: Duration::from_secs(600),
        },
        FetchOutcome::NoSuchHost,
        FetchOutcome::OurFault("x".to_owned()),
    ];
    all.extend([200, 304, 404, 429, 500, 503].map(FetchOutcome::Answered));
    all.extend(networks.map(FetchOutcome::Network));
    all.extend([Phase::Connect, Phase::Read, Phase::Total].map(FetchOutcome::TimedOut));
    all.extend(answers.map(FetchOutcome::BadAnswer));
    all
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::address::AddressGuard;
    use fetchwell_policy::url::WebUrl;

    use super::*;

    const DIFFERENCES: &str = include_str!("../../../docs/differences.md");

    /// The statuses in the design of the Retriever Service.
    const STATUSES_OF_THE_DESIGN: [&str; 5] =
        ["success", "http_error", "timeout", "network_error", "rate_limited"];

    /// Whether a row matches a text; `…` in the row stands for any text.
    fn shows(pattern: &str, text: &str) -> bool {
        let pieces: Vec<&str> = pattern.split('…').collect();
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return false };
        if pieces.len() == 1 {
            return text == pattern;
        }
        let Some(rest) = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
            return false;
        };
        let mut middle = pieces.iter().skip(1).take(pieces.len() - 2);
        let after =
            |rest: &'_ str, piece: &str| rest.split_once(piece).map(|(_, after)| after.to_owned());
        middle.try_fold(rest.to_owned(), |rest, piece| after(&rest, piece)).is_some()
    }

    /// Asserts that each text matches a row, and that each row matches a text.
    fn shows_exactly(heading: &str, texts: &[String]) {
        let patterns: Vec<String> = table(heading).into_iter().map(|row| row[0].clone()).collect();
        for text in texts {
            assert!(patterns.iter().any(|pattern| shows(pattern, text)), "{heading} lacks: {text}");
        }
        for pattern in &patterns {
            assert!(
                texts.iter().any(|text| shows(pattern, text)),
                "{heading}: nobody says {pattern}"
            );
        }
    }

    #[test]
    fn what_differs_is_left_out() {
        for (pattern, text, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a …", "a b", true),
            ("a … c … e", "a b c d e", true),
            ("a … c … e", "a b d e", false),
            ("… b", "a b", true),
        ] {
            assert_eq!(shows(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn every_reason_is_on_the_page() {
        let texts: Vec<String> =
            everything_that_happens().iter().map(FetchOutcome::to_string).collect();
        shows_exactly("Reasons", &texts);
    }

    #[test]
    fn every_refusal_is_on_the_page() {
        let long = format!("http://a.test/{}", "x".repeat(9_000));
        let long_host = format!("http://{}.test/", "x".repeat(300));
        let urls = [
            long.as_str(),
            "a.test",
            "ftp://a.test/",
            "http://me:secret@a.test/",
            "http://./",
            long_host.as_str(),
            "http://a.test:25/",
        ];
        let mut texts: Vec<String> = urls
            .map(|url| WebUrl::parse(url).expect_err(url).to_string().replace('`', ""))
            .to_vec();
        let private = "10.0.0.1".parse().expect("an address");
        texts.push(AddressGuard::default().check(private).expect_err("it is private").to_string());
        let patterns: Vec<String> =
            table("Refusals").into_iter().map(|row| row[0].clone()).collect();
        for text in texts {
            assert!(patterns.iter().any(|pattern| shows(pattern, &text)), "the page lacks: {text}");
        }
    }

    /// Another test compares the list of statuses in docs/errors.md with the program.
    #[test]
    fn every_status_that_the_design_does_not_have_is_a_difference() {
        for row in table("Statuses of results") {
            let status = row[0].as_str();
            let is_told = DIFFERENCES.contains(&format!("`{status}`"));
            assert!(is_told, "docs/differences.md does not mention {status}");
        }
        let designed = STATUSES_OF_THE_DESIGN.map(|status| format!("`{status}`")).join(", ");
        assert!(DIFFERENCES.contains(&format!("| statuses {designed} |")));
    }

    /// Differences that clients of the designs have run into.
    #[test]
    fn what_clients_can_notice_is_a_difference() {
        for words in [
            "full jitter",
            "`breaker.jitter`",
            "robots.txt is a site failure",
            "less than 60 s counts as 60 s",
            "`decode_responses=True`",
            "the other is embedded",
            "For a body that is not text, `content` is null",
            "`http_status` 304",
        ] {
            assert!(DIFFERENCES.contains(words), "docs/differences.md does not say {words:?}");
        }
    }
}

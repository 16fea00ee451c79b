//! Lines of the index: what is selected is what reading each of them as JSON would select.

use std::collections::BTreeMap;

use fetchwell_archive::cdxj::{CdxRecord, IndexFilter, Language, LanguagePlace, Sifted, sift};
use proptest::prelude::*;
use serde_json::Value;

/// A line, read without any of our code. None if it can't be.
fn plainly_read(line: &str) -> Option<CdxRecord> {
    let (surt, rest) = line.split_once(' ')?;
    let (timestamp, json) = rest.split_once(' ')?;
    let is_timestamp = timestamp.len() == 14 && timestamp.chars().all(|c| c.is_ascii_digit());
    let object: BTreeMap<String, Value> = serde_json::from_str(json).ok()?;
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let metadata = object.into_iter().map(|(name, value)| (name, text(value))).collect();
    (is_timestamp && !surt.is_empty()).then(|| CdxRecord {
        surt_url: surt.to_owned(),
        timestamp: timestamp.to_owned(),
        metadata,
    })
}

fn plainly_wants(filter: &IndexFilter, record: &CdxRecord) -> bool {
    let is = |name: &str, test: &dyn Fn(&str) -> bool| {
        record.metadata.get(name).is_some_and(|value| test(value))
    };
    let number = |value: &str| {
        value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse::<u64>().ok()).flatten()
    };
    filter.status.is_none_or(|status| is("status", &|v| number(v) == Some(status.into())))
        && filter.language.as_ref().is_none_or(|language| {
            is("languages", &|v| {
                let codes: Vec<&str> = v.split(',').map(str::trim).collect();
                match language.place {
                    LanguagePlace::Any => codes.contains(&language.code.as_str()),
                    LanguagePlace::Primary => codes[0] == language.code,
                }
            })
        })
        && filter.mime.as_ref().is_none_or(|mime| is("mime", &|v| v.eq_ignore_ascii_case(mime)))
        && filter.url_prefix.as_ref().is_none_or(|prefix| is("url", &|v| v.starts_with(prefix)))
        && filter
            .length_bytes
            .as_ref()
            .is_none_or(|range| is("length", &|v| number(v).is_some_and(|n| range.contains(&n))))
}

fn name() -> impl Strategy<Value = String> {
    let known =
        prop::sample::select(vec!["status", "languages", "mime", "url", "length", "digest"]);
    prop_oneof![
        8 => known.prop_map(|name| format!("\"{name}\"")),
        1 => Just(r#""\u0073tatus""#.to_owned()),
        1 => Just(r#""l\u0061nguages""#.to_owned()),
        1 => "\"[ -!#-Z^-~]{0,6}\"",
    ]
}

fn value() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        "200",
        "404",
        "eng",
        "zho,eng",
        "eng,zho",
        "english",
        " eng",
        "text/html",
        "TEXT/html",
        "http://a.test/",
        "http://b.test/{x}",
        "1000",
        "",
        "status",
        "languages",
        "\\\"status\\\"",
        "\\u0065ng",
        "\\n",
        "ü",
    ]);
    prop_oneof![
        12 => text.prop_map(|text| format!("\"{text}\"")),
        1 => Just("200".to_owned()),
        1 => Just("null".to_owned()),
        1 => Just(r#"{"status":"200","languages": "eng"}"#.to_owned()),
        1 => Just(r#"["status","200"]"#.to_owned()),
        1 => Just("{".to_owned()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let space = || prop::sample::select(vec!["", " ", " ", "  ", "\t"]);
    let field = (name(), space(), value(), space(), space())
        .prop_map(|(name, a, value, b, c)| format!("{c}{name}{b}:{a}{value}{c}"));
    let fields = prop::collection::vec(field, 0..7).prop_map(|fields| fields.join(","));
    (fields, any::<prop::sample::Index>(), 0_u8..10, any::<char>()).prop_map(
        |(fields, at, fate, any)| {
            let line = format!("com,example)/a 20240712000102 {{{fields}}}");
            let mut chars: Vec<char> = line.chars().collect();
            match fate {
                0 => chars.truncate(at.index(chars.len())),
                1 => {
                    let at = at.index(chars.len());
                    chars[at] = any;
                }
                _ => {}
            }
            chars.into_iter().filter(|c| !matches!(c, '\n' | '\r')).collect()
        },
    )
}

fn filter() -> impl Strategy<Value = IndexFilter> {
    let language = prop_oneof![
        Just(Language::any("eng")),
        Just(Language { code: "eng".into(), place: LanguagePlace::Primary }),
    ];
    (
        prop::option::of(Just(200)),
        prop::option::of(language),
        prop::option::weighted(0.2, Just("text/html".to_owned())),
        prop::option::weighted(0.2, Just("http://a".to_owned())),
        prop::option::weighted(0.2, Just(200..=1_000)),
    )
        .prop_map(|(status, language, mime, url_prefix, length_bytes)| IndexFilter {
            status,
            language,
            mime,
            url_prefix,
            length_bytes,
        })
}

/// The selected lines, as elements of a batch.
fn select(block: &[u8], filter: &IndexFilter) -> (Vec<CdxRecord>, Sifted) {
    let mut selected = Vec::new();
    let sifted = sift(block, filter, |line| {
        let mut json = Vec::new();
        line.write_json(&mut json);
        selected.push(serde_json::from_slice(&json).unwrap());
    });
    (selected, sifted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_selection_is_what_reading_every_line_gives(
        lines in prop::collection::vec(line(), 0..12),
        filter in filter(),
    ) {
        let block: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let (selected, selection) = select(block.as_bytes(), &filter);
        let read: Vec<Option<CdxRecord>> = lines.iter().map(|line| plainly_read(line)).collect();
        let wanted: Vec<CdxRecord> =
            read.iter().flatten().filter(|record| plainly_wants(&filter, record)).cloned().collect();
        let key = |record: &CdxRecord| {
            let nested = |value: &String| value.starts_with(['{', '[']);
            let flat = record.metadata.iter().filter(|(_, value)| !nested(value));
            (record.surt_url.clone(), flat.map(|(n, v)| (n.clone(), v.clone())).collect::<Vec<_>>())
        };
        // How an object within is written, spaces and all, is not the plain reader's to know.
        let keys = |records: &[CdxRecord]| records.iter().map(key).collect::<Vec<_>>();
        prop_assert_eq!(keys(&selected), keys(&wanted));
        prop_assert_eq!((selection.lines, selection.wanted), (lines.len() as u64, wanted.len() as u64));
        let rejected: u64 = selection.rejected.iter().sum();
        let accounted = selection.wanted + rejected + selection.malformed;
        prop_assert_eq!(selection.lines, accounted, "each line is counted once");
        for malformed in &selection.first_malformed {
            let place = usize::try_from(malformed.number - 1).unwrap();
            prop_assert!(read[place].is_none(), "{} can be read: {}", lines[place], malformed.fault);
        }
        if filter == IndexFilter::default() {
            let unreadable = read.iter().filter(|record| record.is_none()).count();
            prop_assert_eq!(selection.malformed, unreadable as u64);
        }
    }

    #[test]
    fn any_bytes_are_lines(block in prop::collection::vec(any::<u8>(), 0..300), filter in filter()) {
        let (_, selection) = select(&block, &filter);
        prop_assert_eq!(selection.wanted, 0);
    }
}

#[test]
fn a_block_as_common_crawl_has_it() {
    let line = |n: usize, status: &str, languages: &str| {
        format!(
            "com,example)/{n} 20240712000102 {{\"url\": \"http://example.com/{n}\", \"mime\": \"text/html\", \
             \"status\": \"{status}\", \"length\": \"1000\", \"offset\": \"77\", \
             \"filename\": \"crawl-data/x.warc.gz\"{languages}}}\n"
        )
    };
    let mut block = String::new();
    for n in 0..120 {
        block.push_str(&line(n, "200", ", \"languages\": \"zho,eng\""));
        block.push_str(&line(n, "404", ", \"languages\": \"eng\""));
        block.push_str(&line(n, "200", ", \"languages\": \"engx\""));
        block.push_str(&line(n, "200", ""));
        block.push_str("garbage\n");
    }
    let filter = IndexFilter {
        status: Some(200),
        language: Some(Language::any("eng")),
        ..IndexFilter::default()
    };
    let (made, selection) = select(block.as_bytes(), &filter);
    assert_eq!((selection.lines, selection.wanted), (600, 120));
    assert_eq!((made.len(), selection.malformed, selection.first_malformed.len()), (120, 120, 16));
    assert_eq!(selection.rejected, [120, 240, 0, 0, 0], "by status, by language");
    assert_eq!(selection.first_malformed[1].number, 10);
    assert_eq!(
        (made, selection),
        select(block.as_bytes(), &filter),
        "the same, whenever it is made"
    );
}

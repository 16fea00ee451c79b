use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde_json::Value;

/// The input of a program, kept outside of it to check its output.
pub struct OutsideLedger {
    urls: Vec<String>,
}

impl OutsideLedger {
    /// A ledger of these distinct URLs.
    pub fn of(urls: Vec<String>) -> OutsideLedger {
        OutsideLedger { urls }
    }

    /// The input URLs.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Writes the list for `fetch @FILE`.
    pub fn write_list(&self, path: &Path) {
        std::fs::write(path, self.urls.join("\n") + "\n")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// The rows of an output file; panics with all differences unless each URL has exactly one.
    pub fn balance(&self, output: &Path) -> Vec<Value> {
        let text =
            std::fs::read(output).unwrap_or_else(|error| panic!("{}: {error}", output.display()));
        self.compare(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", output.display()))
    }

    /// The rows in `output`, if each URL has exactly one and there is nothing else.
    pub fn compare(&self, output: &[u8]) -> Result<Vec<Value>, Imbalance> {
        let mut rows_left: HashMap<&str, u32> =
            self.urls.iter().map(|url| (url.as_str(), 1)).collect();
        let mut rows = Vec::new();
        let mut wrong = Imbalance::default();
        for line in output.split_inclusive(|byte| *byte == b'\n') {
            let row = line.strip_suffix(b"\n").and_then(|row| serde_json::from_slice(row).ok());
            let Some(row): Option<Value> = row else {
                wrong.torn.push(String::from_utf8_lossy(line).chars().take(80).collect());
                continue;
            };
            let url = row["url"].as_str().unwrap_or_default();
            match rows_left.get_mut(url) {
                Some(0) => wrong.doubled.push(url.to_owned()),
                Some(left) => *left = 0,
                None => wrong.foreign.push(url.to_owned()),
            }
            rows.push(row);
        }
        let missing = self.urls.iter().filter(|url| rows_left[url.as_str()] > 0);
        wrong.missing = missing.cloned().collect();
        if wrong == Imbalance::default() { Ok(rows) } else { Err(wrong) }
    }
}

/// All differences in an output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imbalance {
    /// URLs without a row.
    pub missing: Vec<String>,
    /// The URLs of additional rows, beyond the first of each URL.
    pub doubled: Vec<String>,
    /// URLs of rows that are not in the input.
    pub foreign: Vec<String>,
    /// The beginnings of lines that are not rows.
    pub torn: Vec<String>,
}

impl fmt::Display for Imbalance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Imbalance { missing, doubled, foreign, torn } = self;
        let kinds =
            [("missing", missing), ("doubled", doubled), ("foreign", foreign), ("torn", torn)];
        for (name, found) in kinds.into_iter().filter(|(_, found)| !found.is_empty()) {
            let first = &found[..found.len().min(5)];
            write!(out, "{} {name}, such as {first:?}; ", found.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(output: &str) -> Result<usize, Imbalance> {
        let ledger = OutsideLedger::of(vec!["a".to_owned(), "b".to_owned()]);
        ledger.compare(output.as_bytes()).map(|rows| rows.len())
    }

    #[test]
    fn each_url_has_exactly_one_row_and_every_line_is_one() {
        let a = "{\"url\":\"a\"}\n";
        let b = "{\"url\":\"b\"}\n";
        assert_eq!(compare(&format!("{b}{a}")), Ok(2));
        let wrong = compare(&format!("{a}{{\"url\":\"c\"}}\n{a}{{\"url\":\"b\"")).unwrap_err();
        let one = |text: &str| vec![text.to_owned()];
        let expected = Imbalance {
            missing: one("b"),
            doubled: one("a"),
            foreign: one("c"),
            torn: one("{\"url\":\"b\""),
        };
        assert_eq!(wrong, expected);
        // A row without its newline is incomplete, and so is one that is cut in the middle.
        assert_eq!(compare(&format!("{a}{}", b.trim())).unwrap_err().torn.len(), 1);
        assert_eq!(compare(&format!("{a}{{\"ur\n{b}")).unwrap_err().torn.len(), 1);
    }
}

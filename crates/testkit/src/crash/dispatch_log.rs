use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// The times at which all processes wrote their request heads, by the clock of the politeness store. They are from the
/// processes' own logs, so they are exact to the microsecond.
#[derive(Default)]
pub struct DispatchLog {
    heads: HashMap<String, Vec<Head>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    at_us: i64,
    interval_us: i64,
    follows_robots: bool,
}

/// Two heads that are closer together than the interval of the site.
#[derive(Debug, PartialEq, Eq)]
pub struct TooClose {
    pub site: String,
    /// The actual distance.
    pub gap: Duration,
    /// The required distance.
    pub interval: Duration,
}

impl fmt::Display for TooClose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {:?} instead of {:?}", self.site, self.gap, self.interval)
    }
}

impl DispatchLog {
    /// Adds the log of a process: JSON lines with all details (`-v`).
    pub fn read(&mut self, stderr: &str) {
        for line in stderr.lines().filter(|line| line.contains("fetchwell::dispatch")) {
            // The last line of a killed process may be incomplete.
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let fields = &line["fields"];
            let number = |name: &str| fields[name].as_i64().unwrap_or_default();
            let head = Head {
                at_us: number("at_us"),
                interval_us: number("interval_us"),
                follows_robots: fields["follows_robots"].as_bool().unwrap_or_default(),
            };
            let site = fields["site"].as_str().unwrap_or_default().to_owned();
            self.heads.entry(site).or_default().push(head);
        }
    }

    /// The number of heads.
    pub fn len(&self) -> usize {
        self.heads.values().map(Vec::len).sum()
    }

    /// Whether no heads were logged at all.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// All heads that came too early. A robots.txt and the page that it was read for count as one.
    pub fn too_close(&self) -> Vec<TooClose> {
        let mut found = Vec::new();
        for (site, heads) in &self.heads {
            let mut heads = heads.clone();
            heads.sort_unstable();
            for pair in heads.windows(2) {
                let gap_us = pair[1].at_us - pair[0].at_us;
                if gap_us < pair[1].interval_us && !pair[1].follows_robots {
                    let micros = |us: i64| Duration::from_micros(us.unsigned_abs());
                    let gap = micros(gap_us);
                    let interval = micros(pair[1].interval_us);
                    found.push(TooClose { site: site.clone(), gap, interval });
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(site: &str, at_us: i64, follows_robots: bool) -> String {
        let fields = serde_json::json!({
            "site": site, "at_us": at_us, "interval_us": 1_000, "follows_robots": follows_robots
        });
        serde_json::json!({ "target": "fetchwell::dispatch", "fields": fields }).to_string()
    }

    #[test]
    fn heads_of_all_processes_are_judged_together_and_to_the_microsecond() {
        let mut log = DispatchLog::default();
        log.read(&format!("{}\nnonsense\n{}", line("a", 0, false), line("a", 2_000, false)));
        log.read(&format!("{}\n{}", line("a", 10, true), line("b", 5, false)));
        assert_eq!((log.len(), log.too_close()), (4, Vec::new()));
        log.read(&line("a", 2_999, false));
        let gap = Duration::from_micros(999);
        let interval = Duration::from_micros(1_000);
        assert_eq!(log.too_close(), [TooClose { site: "a".to_owned(), gap, interval }]);
    }
}

//! `fetchwell pages status`: counts URLs by state, and lists hosts that do not exist.

use std::time::Duration;

use fetchwell_engine::ports::url_queue::Backlog;
use fetchwell_policy::units::format_duration;
use fetchwell_service::sites::missing_hosts;
use fetchwell_settings::Settings;
use serde_json::json;

use crate::console::exit::Exit;
use crate::console::output::{json_line, print};
use crate::console::table::table;
use crate::wiring::{open_list, open_politeness};

/// Prints how many URLs wait, where and for how long, and which of their hosts do not exist.
pub(super) async fn status(settings: &Settings, as_json: bool) -> Result<Exit, Exit> {
    let list = open_list(settings, true).await?;
    let backlog = list.backlog().await?;
    let waited = list.waited_longest().await?;
    let missing_hosts = missing_hosts(&*open_politeness(settings).await?).await?;
    let values = &settings.values;
    let names = (values.pages_input_queue.as_str(), values.pages_dlq_queue.as_str());
    let status = Status::of(backlog, waited, missing_hosts);
    let text = if as_json { status.json(names) } else { status.text(names) };
    print(text)
}

/// The number of URLs by state. Of the backlog, those `waiting` are on the list, queued, delayed or `leased`.
struct Status {
    backlog: Backlog,
    /// Held by an instance that has not started them.
    leased: i64,
    under_way: i64,
    waited: Option<Duration>,
    /// Sites that failed in the last hour because their host names do not exist.
    missing_hosts: Vec<String>,
}

impl Status {
    fn of(backlog: Backlog, waited: Option<Duration>, missing_hosts: Vec<String>) -> Status {
        let Backlog { ledger, on_list, waiting, .. } = backlog;
        let all = i64::try_from(waiting).unwrap_or(i64::MAX);
        let listed = i64::try_from(on_list.unwrap_or(0)).unwrap_or(i64::MAX);
        let leased = (all - listed - ledger.waiting()).clamp(0, ledger.in_flight);
        Status { backlog, leased, under_way: ledger.in_flight - leased, waited, missing_hosts }
    }

    fn json(&self, (list, dead_letters): (&str, &str)) -> String {
        let Backlog { ledger, on_list, waiting, dead } = self.backlog;
        json_line(json!({
            "list": list,
            "waiting": waiting,
            "on_list": on_list,
            "queued": ledger.queued,
            "delayed": ledger.delayed,
            "leased": self.leased,
            "under_way": self.under_way,
            "oldest_waiting_seconds": self.waited.map(|waited| waited.as_secs_f64()),
            "dead_letters": dead,
            "dead_letter_list": dead_letters,
            "missing_hosts": self.missing_hosts,
        }))
    }

    fn text(&self, (list, dead_letters): (&str, &str)) -> String {
        let Backlog { ledger, on_list, waiting, dead } = self.backlog;
        let mut rows = vec![[waiting.to_string(), format!("waiting for {list}, of these:")]];
        if let Some(on_list) = on_list {
            rows.push([on_list.to_string(), "  on the list".to_owned()]);
        }
        let states = [
            (ledger.queued, "  queued by site"),
            (ledger.delayed, "  delayed"),
            (self.leased, "  leased, not yet in flight"),
            (self.under_way, "in flight"),
        ];
        rows.extend(states.map(|(count, what)| [count.to_string(), what.to_owned()]));
        rows.push([dead.to_string(), format!("dead letters on {dead_letters}")]);
        let waited = match self.waited {
            Some(waited) => format_duration(Duration::from_secs(waited.as_secs())),
            None => "-".to_owned(),
        };
        rows.push([waited, "since the oldest was accepted".to_owned()]);
        let mut text = table(["URLs", ""], &rows);
        if !self.missing_hosts.is_empty() {
            text.push_str(
                "\nThese hosts do not exist. Their URLs wait and are retried; check the spelling of the hosts:\n",
            );
        }
        for host in &self.missing_hosts {
            text.push_str(&format!("  {host}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::queue::Ledger;

    use super::*;

    #[test]
    fn what_is_leased_and_not_under_way_is_told_apart() {
        let ledger = Ledger {
            accepted: 20,
            done: 5,
            queued: 3,
            in_flight: 6,
            delayed: 4,
            dead: 2,
            ..Ledger::default()
        };
        for (on_list, waiting) in [(Some(7), 18), (None, 11)] {
            let backlog = Backlog { ledger, on_list, waiting, dead: 2 };
            let status = Status::of(backlog, Some(Duration::from_millis(61_500)), Vec::new());
            assert_eq!((status.leased, status.under_way), (4, 2));
            let names = ("crawler_queue", "page_fetcher_dlq");
            let told: serde_json::Value = serde_json::from_str(&status.json(names)).unwrap();
            assert_eq!(told["waiting"], waiting);
            assert_eq!(told["oldest_waiting_seconds"], 61.5);
            let text = status.text(names);
            assert!(text.contains("waiting for crawler_queue") && text.contains("1m1s"), "{text}");
            assert_eq!(text.contains("on the list"), on_list.is_some(), "{text}");
            assert!(!text.contains("do not exist"), "{text}");
        }
    }
}

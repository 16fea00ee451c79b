//! A page that plays a run: machines, sites, leases, requests and faults, with a time slider.

use serde_json::json;

use crate::scenario::Scenario;
use crate::trace::Entry;

const PLAYER: &str = include_str!("player.html");

/// One self-contained HTML page.
pub fn page(scenario: &Scenario, trace: &[Entry]) -> String {
    let entries: Vec<_> = trace
        .iter()
        .map(|Entry { at, who, what, detail }| json!([at.as_secs_f64(), who, what, detail]))
        .collect();
    let data = json!({ "scenario": scenario.to_string(), "entries": entries }).to_string();
    // Nothing in the data can end the script element.
    PLAYER.replacen("DATA", &data.replace('<', "\\u003c"), 1)
}

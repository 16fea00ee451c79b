//! Renders a snapshot as lines for a screen of any size. Pure.

use std::time::Duration;

use super::board::{DemoSnapshot, SiteLine, Standing};
use super::origin::status_word;
use crate::console::terminal::{ScreenLine, Tint, bold, fit};

/// Lines for events, if there is room.
const EVENT_LINES: usize = 7;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// At most `height` lines, none longer than `width`.
pub(super) fn frame(
    snapshot: &DemoSnapshot,
    events: &[String],
    width: usize,
    height: usize,
) -> Vec<ScreenLine> {
    let mut lines = head(snapshot, width);
    let room = height.saturating_sub(lines.len() + 1);
    // Each part has a blank line and a heading. If there is little room, the sites get it.
    let event_lines = if room > 12 { EVENT_LINES.min(room / 2 - 2) } else { 0 };
    let with_events = if event_lines > 0 { event_lines + 2 } else { 0 };
    let site_lines = room.saturating_sub(with_events + 2);
    if site_lines > 0 {
        let heading = bold("SITE             STATE                LAST HITS  PACE  BEHAVIOUR");
        lines.extend([ScreenLine::new(), heading]);
        lines.extend(snapshot.troubled.iter().take(site_lines).map(site_line));
    }
    if event_lines > 0 {
        lines.extend([ScreenLine::new(), bold("EVENTS")]);
        let first = events.len().saturating_sub(event_lines);
        lines.extend(events.iter().skip(first).map(|event| event_line(event)));
    }
    fit(lines, foot(snapshot), width, height)
}

fn head(snapshot: &DemoSnapshot, width: usize) -> Vec<ScreenLine> {
    let DemoSnapshot { sites, total, under_way, failed, skipped, .. } = snapshot;
    let finished = snapshot.finished();
    let share = finished as f64 / (*total).max(1) as f64;
    let waiting = total.saturating_sub(finished + under_way);
    let title = format!("fetchwell demo  {sites} simulated sites, {total} pages");
    let clock = format!("{:>6.1} s", snapshot.elapsed.as_secs_f64());
    let space = width.saturating_sub(title.chars().count() + clock.chars().count());
    let count = |tint, text: String| (tint, format!("{text}   "));
    vec![
        vec![(Tint::Bold, title), (Tint::Plain, " ".repeat(space)), (Tint::Dim, clock)],
        vec![
            (Tint::Good, bar(share, width.saturating_sub(7))),
            (Tint::Plain, format!("  {:>3.0} %", (share * 100.0).floor())),
        ],
        vec![
            count(Tint::Plain, format!("done {}", finished - skipped)),
            count(Tint::Plain, format!("skipped {skipped}")),
            count(
                if *failed > 0 { Tint::Warning } else { Tint::Plain },
                format!("failed {failed}"),
            ),
            count(Tint::Plain, format!("in flight {under_way}")),
            count(Tint::Plain, format!("waiting {waiting}")),
        ],
        rate_line(&snapshot.results_by_second, width),
        verdict_line(snapshot),
    ]
}

fn rate_line(results_by_second: &[u64], width: usize) -> ScreenLine {
    // The current second is incomplete and would always look slow.
    let whole = &results_by_second[..results_by_second.len().saturating_sub(1)];
    let now = whole.last().copied().unwrap_or_default();
    let room = width.saturating_sub(16).min(60);
    let shown = &whole[whole.len().saturating_sub(room)..];
    let text = format!("{now:>5} pages/s  ");
    vec![(Tint::Plain, text), (Tint::Good, sparkline(shown))]
}

fn sparkline(values: &[u64]) -> String {
    let most = values.iter().copied().max().unwrap_or_default().max(1);
    let place = |value: u64| (value * (BARS.len() as u64 - 1)).div_ceil(most) as usize;
    values.iter().map(|value| BARS[place(*value).min(BARS.len() - 1)]).collect()
}

fn verdict_line(snapshot: &DemoSnapshot) -> ScreenLine {
    let judgement = &snapshot.judgement;
    let early = judgement.too_early;
    let tint = if early == 0 { Tint::Good } else { Tint::Bad };
    vec![
        (Tint::Plain, format!("The sites: {} requests, ", judgement.requests)),
        (tint, format!("{early} came too early")),
        (Tint::Dim, format!("  ({} gaps checked)", judgement.gaps_judged)),
    ]
}

fn site_line(site: &SiteLine) -> ScreenLine {
    let (tint, standing) = match site.standing {
        Standing::Probing => (Tint::Warning, "down, being probed".to_owned()),
        Standing::Down { probe_in } => (Tint::Bad, format!("down, probe in {}", secs(probe_in))),
        Standing::Resting { left } => (Tint::Warning, format!("resting for {}", secs(left))),
        Standing::Paced => (Tint::Good, "paced".to_owned()),
        Standing::Quiet => (Tint::Dim, "quiet".to_owned()),
    };
    let last = if site.hits == 0 { "-".to_owned() } else { status_word(site.last_status) };
    let name = site.name.trim_end_matches(".test");
    vec![
        (Tint::Plain, format!("{name:<16} ")),
        (tint, format!("{standing:<20} ")),
        (status_tint(site), format!("{last:>4} ")),
        (Tint::Plain, format!("{:>4} {:>5}  ", site.hits, secs(site.interval))),
        (Tint::Dim, site.about.to_owned()),
    ]
}

fn status_tint(site: &SiteLine) -> Tint {
    match site.last_status {
        Some(200..=399) => Tint::Plain,
        Some(429) => Tint::Warning,
        None if site.hits == 0 => Tint::Dim,
        _ => Tint::Bad,
    }
}

fn event_line(event: &str) -> ScreenLine {
    let tint = match event {
        _ if event.starts_with("Circuit open") => Tint::Bad,
        _ if event.starts_with("Circuit closed") => Tint::Good,
        _ => Tint::Dim,
    };
    vec![(tint, event.to_owned())]
}

fn foot(snapshot: &DemoSnapshot) -> ScreenLine {
    if snapshot.is_stopping {
        let text = "stopping: waiting for requests in flight; press again to exit now";
        return vec![(Tint::Dim, text.to_owned())];
    }
    let keys = if snapshot.is_over { "done; press any key to exit" } else { "q quits" };
    let mut foot = vec![(Tint::Dim, keys.to_owned())];
    if !snapshot.dashboard.is_empty() {
        foot.push((Tint::Dim, "   dashboard: ".to_owned()));
        foot.push((Tint::Bold, snapshot.dashboard.clone()));
    }
    foot
}

fn secs(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

fn bar(share: f64, width: usize) -> String {
    let full = ((share * width as f64) as usize).min(width);
    "█".repeat(full) + &"░".repeat(width - full)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn snapshot() -> DemoSnapshot {
        let site = |standing| SiteLine {
            name: "flapping-01.test".to_owned(),
            about: "up and down, repeatedly",
            standing,
            last_status: Some(503),
            hits: 12,
            interval: Duration::from_millis(500),
        };
        let standings = [
            Standing::Down { probe_in: Duration::from_millis(2_100) },
            Standing::Resting { left: Duration::from_secs(1) },
            Standing::Paced,
        ];
        DemoSnapshot {
            elapsed: Duration::from_secs(12),
            sites: 300,
            total: 4_000,
            done: 1_990,
            skipped: 10,
            failed: 3,
            under_way: 25,
            results_by_second: vec![0, 50, 100, 7],
            troubled: standings.map(site).to_vec(),
            ..DemoSnapshot::default()
        }
    }

    fn text(lines: &[ScreenLine]) -> Vec<String> {
        lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    #[test]
    fn a_screen_says_what_there_is_to_say() {
        let events = vec!["Circuit open: flapping-01.test appears down.".to_owned()];
        let screen = text(&frame(&snapshot(), &events, 80, 24)).join("\n");
        for part in [
            "300 simulated sites, 4000 pages",
            "12.0 s",
            " 50 %",
            "done 1990   skipped 10   failed 3   in flight 25   waiting 1975",
            "100 pages/s  ▁▅█",
            "0 came too early",
            "flapping-01      down, probe in 2.1 s  503   12 0.5 s  up and down, repeatedly",
            "resting for 1.0 s",
            "Circuit open: flapping-01.test",
            "q quits",
        ] {
            assert!(screen.contains(part), "{part} is not in\n{screen}");
        }
    }

    #[test]
    fn the_last_screen_says_that_the_dashboard_waits_for_a_key() {
        let dashboard = "http://127.0.0.1:8082/".to_owned();
        let over = DemoSnapshot { done: 3_990, is_over: true, dashboard, ..snapshot() };
        let screen = text(&frame(&over, &[], 80, 24)).join("\n");
        for part in ["100 %", "done; press any key to exit   dashboard: http://127.0.0.1:8082/"] {
            assert!(screen.contains(part), "{part} is not in\n{screen}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_longer_and_no_screen_higher_than_there_is_room(
            width in 0_usize..200,
            height in 0_usize..60,
            event in "\\PC{0,200}",
        ) {
            let lines = frame(&snapshot(), &vec![event; 20], width, height);
            prop_assert_eq!(lines.len(), height);
            for line in text(&lines) {
                prop_assert!(line.chars().count() <= width, "{}", line);
            }
        }
    }
}

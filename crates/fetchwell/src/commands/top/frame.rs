//! Renders a snapshot as lines for a screen of any size. Pure.

use super::snapshot::{FailureLine, QueueLine, SiteLine, StoreSnapshot};
use super::view::View;
use crate::console::terminal::{ScreenLine, Tint, bold, fit, printable};

/// Lines for failures, if there is room.
const FAILURE_LINES: usize = 6;
/// The number of sites shown before there is room for failures.
const SITES_FIRST: usize = 4;
/// From this number on, the count may be incomplete.
const COUNTED_UP_TO: u64 = 1_000;

/// Exactly `height` lines, none longer than `width`.
pub(super) fn frame(
    snapshot: &StoreSnapshot,
    view: &View,
    width: usize,
    height: usize,
) -> Vec<ScreenLine> {
    let mut lines = vec![head(snapshot, view, width), ScreenLine::new(), queue_heading()];
    lines.extend(snapshot.queues.iter().map(queue_line));
    // Each of the two parts takes a blank line and a heading, and the footer one line.
    let room = height.saturating_sub(lines.len() + 3);
    let failures = room.saturating_sub(SITES_FIRST + 2).min(FAILURE_LINES);
    let failures = failures.min(snapshot.failures.len());
    let sites = room.saturating_sub(if failures > 0 { failures + 2 } else { 0 });
    let shown = view.sites(snapshot);
    lines.extend([ScreenLine::new(), site_heading(snapshot, view, shown.len())]);
    lines.extend(shown.iter().take(sites).map(|site| site_line(site)));
    if failures > 0 {
        lines.extend([ScreenLine::new(), bold("RECENT FAILURES")]);
        lines.extend(snapshot.failures.iter().take(failures).map(failure_line));
    }
    fit(lines, foot(view), width, height)
}

/// Everything, at full height, for `--once`.
pub(super) fn page(snapshot: &StoreSnapshot, view: &View) -> String {
    let height = snapshot.queues.len() + snapshot.sites.len() + FAILURE_LINES + SITES_FIRST + 8;
    let lines = frame(snapshot, view, usize::MAX, height);
    let text = |line: &ScreenLine| line.iter().map(|(_, text)| text.as_str()).collect::<String>();
    let mut lines: Vec<String> = lines.iter().map(text).collect();
    // The footer only explains keys.
    lines.pop();
    format!("{}\n", lines.join("\n").trim_end())
}

fn head(snapshot: &StoreSnapshot, view: &View, width: usize) -> ScreenLine {
    let title = format!("fetchwell top  {}", snapshot.store);
    let state = if view.is_paused { "  paused" } else { "" };
    let right = format!("{}{state}", snapshot.at);
    let space = width.min(100).saturating_sub(title.chars().count() + right.chars().count());
    vec![(Tint::Bold, title), (Tint::Plain, " ".repeat(space.max(2))), (Tint::Dim, right)]
}

fn queue_heading() -> ScreenLine {
    bold(
        "QUEUE                 ACCEPTED      DONE   SKIPPED    QUEUED IN FLIGHT   DELAYED      DEAD    IN/s   OUT/s  OLDEST",
    )
}

fn queue_line(line: &QueueLine) -> ScreenLine {
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    let [counts @ .., (_, dead)] = line.ledger.states();
    let counts: String = counts.map(|(_, count)| format!("{count:>10}")).concat();
    vec![
        (Tint::Plain, format!("{:<20}", shortened(&line.queue, 20))),
        (Tint::Plain, counts),
        (if dead > 0 { Tint::Warning } else { Tint::Plain }, format!("{dead:>10}")),
        (Tint::Plain, format!("{:>8}", rate(line.accepted_per_second))),
        (Tint::Good, format!("{:>8}", rate(line.ended_per_second))),
        (Tint::Plain, format!("{:>8}", line.oldest_waiting_seconds.map_or("-".to_owned(), span))),
    ]
}

fn site_heading(snapshot: &StoreSnapshot, view: &View, shown: usize) -> ScreenLine {
    let mut line = bold(
        "SITE                             STATE                   WAITING    NEXT    PACE  429 FAIL  FROM",
    );
    let of = if snapshot.has_all_sites { "" } else { "or more " };
    let mut about = format!("   {shown} {of}by {}", view.sort.word());
    if !view.filter.is_empty() {
        about.push_str(&format!(" with {:?}", view.filter));
    }
    line.push((Tint::Dim, about));
    line
}

fn site_line(site: &SiteLine) -> ScreenLine {
    let (tint, standing) = standing(site);
    let count = |count: u32| if count == 0 { "-".to_owned() } else { count.to_string() };
    let waiting = match site.waiting {
        0 => "-".to_owned(),
        few if few < COUNTED_UP_TO => few.to_string(),
        many => format!("{many}+"),
    };
    let next = site.next_slot_in_seconds.map_or("-".to_owned(), span);
    let trouble = site.limited_last_hour + site.failed_last_hour;
    vec![
        (Tint::Plain, format!("{:<32} ", shortened(&site.site, 32))),
        (tint, format!("{standing:<22} ")),
        (Tint::Plain, format!("{waiting:>8}{next:>8}{:>8}", span(site.interval_seconds))),
        (
            if trouble > 0 { Tint::Warning } else { Tint::Plain },
            format!("{:>5}{:>5}", count(site.limited_last_hour), count(site.failed_last_hour)),
        ),
        (Tint::Dim, format!("  {}", site.pace_source)),
    ]
}

fn standing(site: &SiteLine) -> (Tint, String) {
    match (site.held_up_by, site.breaker) {
        (Some("paused"), _) => (Tint::Warning, "paused".to_owned()),
        (_, "half_open") => (Tint::Warning, "down, being probed".to_owned()),
        (_, "open") => {
            let probe = site.next_probe_in_seconds.unwrap_or_default();
            (Tint::Bad, format!("down, probe in {}", span(probe)))
        }
        (Some("penalty"), _) => {
            let rest = site.rests_for_seconds.unwrap_or_default();
            (Tint::Warning, format!("resting for {}", span(rest)))
        }
        (Some("robots"), _) => {
            let next = site.next_slot_in_seconds.unwrap_or_default();
            (Tint::Warning, format!("robots.txt in {}", span(next)))
        }
        (Some(_), _) => (Tint::Good, "paced".to_owned()),
        (None, _) => (Tint::Dim, "free".to_owned()),
    }
}

fn failure_line(failure: &FailureLine) -> ScreenLine {
    let at = failure.at.as_deref().unwrap_or("-");
    vec![
        (Tint::Dim, format!("{at:<27}  ")),
        (Tint::Bad, printable(&failure.reason).into_owned()),
        (Tint::Plain, format!("  {}", printable(&failure.url))),
    ]
}

fn foot(view: &View) -> ScreenLine {
    if view.is_typing {
        let text = format!("/{}_   Enter applies it, Esc clears it", view.filter);
        return vec![(Tint::Bold, text)];
    }
    let pause = if view.is_paused { "p resumes" } else { "p pauses" };
    vec![(Tint::Dim, format!("q quits   s sorts ({})   / filters   {pause}", view.sort.word()))]
}

/// A short duration.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.1}s"),
        s if s < 3_600.0 => format!("{:.0}m{:02.0}s", (s / 60.0).floor(), (s % 60.0).floor()),
        s if s < 172_800.0 => {
            format!("{:.0}h{:02.0}m", (s / 3_600.0).floor(), (s % 3_600.0 / 60.0).floor())
        }
        s => format!("{:.0}d", (s / 86_400.0).floor()),
    }
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::queue::Ledger;
    use proptest::prelude::*;

    use super::super::view::Sort;
    use super::*;

    fn snapshot() -> StoreSnapshot {
        let ledger = Ledger {
            accepted: 1_000_000,
            done: 999_000,
            queued: 900,
            in_flight: 64,
            delayed: 16,
            dead: 20,
            ..Ledger::default()
        };
        let mut queue = QueueLine::of("inbox", &ledger);
        (queue.accepted_per_second, queue.ended_per_second) = (Some(12.5), Some(250.0));
        queue.oldest_waiting_seconds = Some(4.2);
        let site = |name: &str, held_up_by, breaker| SiteLine {
            site: name.to_owned(),
            held_up_by,
            breaker,
            next_probe_in_seconds: Some(28.0),
            rests_for_seconds: Some(90.0),
            next_slot_in_seconds: Some(0.5),
            interval_seconds: 1.0,
            pace_source: "default rate",
            waiting: 7,
            limited_last_hour: 3,
            failed_last_hour: 0,
        };
        let sites = vec![
            site("a.test", Some("pace"), "closed"),
            site("b.test", Some("breaker"), "open"),
            site("c.test", Some("penalty"), "closed"),
            site("d.test", Some("paused"), "closed"),
            site("e.test", None, "closed"),
            site("f.test", Some("breaker"), "half_open"),
        ];
        let failure = FailureLine {
            at: Some("2026-11-15T12:03:04Z".to_owned()),
            site: "b.test".to_owned(),
            reason: "http_error 404".to_owned(),
            url: "http://b.test/gone".to_owned(),
        };
        StoreSnapshot {
            at: "2026-11-15T12:03:05Z".to_owned(),
            store: "sqlite:fetchwell.db".to_owned(),
            queues: vec![queue],
            sites,
            has_all_sites: true,
            failures: vec![failure; 3],
        }
    }

    fn text(lines: &[ScreenLine]) -> String {
        let text =
            |line: &ScreenLine| line.iter().map(|(_, text)| text.as_str()).collect::<String>();
        lines.iter().map(|line| format!("{}\n", text(line))).collect()
    }

    #[test]
    fn a_screen_says_what_there_is_to_say() {
        let screen = text(&frame(&snapshot(), &View::default(), 140, 24));
        for part in [
            "fetchwell top  sqlite:fetchwell.db",
            "2026-11-15T12:03:05Z\n",
            "inbox                  1000000    999000         0       900        64        16        20    12.5   250.0    4.2s",
            "6 by waiting",
            "a.test                           paced                         7    0.5s    1.0s    3    -  default rate",
            "b.test                           down, probe in 28.0s ",
            "c.test                           resting for 1m30s ",
            "d.test                           paused ",
            "e.test                           free ",
            "f.test                           down, being probed ",
            "RECENT FAILURES",
            "2026-11-15T12:03:04Z         http_error 404  http://b.test/gone",
            "q quits   s sorts (waiting)   / filters   p pauses\n",
        ] {
            assert!(screen.contains(part), "{part} is not in\n{screen}");
        }
    }

    #[test]
    fn what_was_chosen_shows() {
        let typing = View { is_typing: true, filter: "b.".to_owned(), ..View::default() };
        let screen = text(&frame(&snapshot(), &typing, 140, 24));
        assert!(screen.contains("1 by waiting with \"b.\"") && screen.contains("/b._"), "{screen}");
        assert!(!screen.contains("a.test"), "{screen}");
        let paused = View { is_paused: true, sort: Sort::Name, ..View::default() };
        let screen = text(&frame(&snapshot(), &paused, 140, 24));
        for part in ["Z  paused\n", "6 by name", "p resumes"] {
            assert!(screen.contains(part), "{part} is not in\n{screen}");
        }
        let part = StoreSnapshot { has_all_sites: false, ..snapshot() };
        assert!(text(&frame(&part, &paused, 140, 24)).contains("6 or more by name"));
    }

    #[test]
    fn a_page_has_everything_and_no_keys() {
        let page = page(&snapshot(), &View::default());
        assert!(page.contains("f.test") && page.contains("RECENT FAILURES"), "{page}");
        assert!(!page.contains("q quits") && page.ends_with("gone\n"), "{page}");
    }

    #[test]
    fn a_terminal_obeys_nothing_that_came_from_outside() {
        let mut snapshot = snapshot();
        snapshot.failures[0].url = "http://a.test/\u{1b}[2J\u{7}".to_owned();
        assert!(!page(&snapshot, &View::default()).contains(['\u{1b}', '\u{7}']));
    }

    #[test]
    fn spans_are_short() {
        for (seconds, expected) in [
            (0.04, "0.0s"),
            (59.9, "59.9s"),
            (60.0, "1m00s"),
            (3_599.0, "59m59s"),
            (3_661.0, "1h01m"),
            (200_000.0, "2d"),
        ] {
            assert_eq!(span(seconds), expected);
        }
    }

    proptest! {
        #[test]
        fn no_line_is_longer_and_no_screen_higher_than_there_is_room(
            width in 0_usize..200,
            height in 0_usize..60,
            url in "\\PC{0,200}",
        ) {
            let mut snapshot = snapshot();
            snapshot.failures.iter_mut().for_each(|failure| failure.url.clone_from(&url));
            let lines = frame(&snapshot, &View::default(), width, height);
            prop_assert_eq!(lines.len(), height);
            for line in &lines {
                let chars: usize = line.iter().map(|(_, text)| text.chars().count()).sum();
                prop_assert!(chars <= width, "{:?}", line);
            }
        }
    }
}

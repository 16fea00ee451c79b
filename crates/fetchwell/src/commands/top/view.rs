//! The user's choices: sort order, filter, pause.

use std::cmp::Reverse;

use super::snapshot::{SiteLine, StoreSnapshot};
use crate::console::terminal::Key;

/// The maximum length of a filter: that of a host name.
const MAX_FILTER_CHARS: usize = 253;

/// The choices made with keys so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) sort: Sort,
    /// Only sites whose names contain this.
    pub(super) filter: String,
    /// Whether keys go into the filter.
    pub(super) is_typing: bool,
    /// Whether updates are paused.
    pub(super) is_paused: bool,
}

/// The sort order of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// Most waiting URLs first.
    #[default]
    Waiting,
    /// Latest next slot first.
    Slowest,
    /// Most failures in the last hour first.
    Failures,
    Name,
}

impl Sort {
    const ALL: [Sort; 4] = [Sort::Waiting, Sort::Slowest, Sort::Failures, Sort::Name];

    pub(super) fn word(self) -> &'static str {
        match self {
            Sort::Waiting => "waiting",
            Sort::Slowest => "slowest",
            Sort::Failures => "failures",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or_default();
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }
}

impl View {
    /// Handles a key. Returns true if it quits.
    pub(super) fn press(&mut self, key: Key) -> bool {
        match key {
            Key::Interrupt => return true,
            Key::Enter if self.is_typing => self.is_typing = false,
            Key::Escape if self.is_typing => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace if self.is_typing => drop(self.filter.pop()),
            Key::Char(letter) if self.is_typing => {
                if self.filter.chars().count() < MAX_FILTER_CHARS && !letter.is_control() {
                    self.filter.extend(letter.to_lowercase());
                }
            }
            Key::Char('q' | 'Q') | Key::Escape => return true,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('/') => self.is_typing = true,
            Key::Char('p') => self.is_paused = !self.is_paused,
            Key::Char(_) | Key::Enter | Key::Backspace => {}
        }
        false
    }

    /// The sites to show, in order.
    pub(super) fn sites<'a>(&self, snapshot: &'a StoreSnapshot) -> Vec<&'a SiteLine> {
        let wanted = |site: &&SiteLine| site.site.contains(&self.filter);
        let mut sites: Vec<&SiteLine> = snapshot.sites.iter().filter(wanted).collect();
        sites.sort_by_key(|site| site.site.as_str());
        match self.sort {
            Sort::Waiting => sites.sort_by_key(|site| Reverse(site.waiting)),
            // A paused site has no next slot, so it counts as the slowest.
            Sort::Slowest => sites.sort_by(|a, b| slot_of(b).total_cmp(&slot_of(a))),
            Sort::Failures => {
                sites.sort_by_key(|site| Reverse(site.failed_last_hour + site.limited_last_hour));
            }
            Sort::Name => {}
        }
        sites
    }
}

fn slot_of(site: &SiteLine) -> f64 {
    site.next_slot_in_seconds.unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(keys: &str) -> (View, bool) {
        let mut view = View::default();
        let key = |letter| match letter {
            '\n' => Key::Enter,
            '\u{8}' => Key::Backspace,
            '\u{1b}' => Key::Escape,
            '\u{3}' => Key::Interrupt,
            other => Key::Char(other),
        };
        let ended = keys.chars().any(|letter| view.press(key(letter)));
        (view, ended)
    }

    #[test]
    fn keys_do_what_the_foot_says() {
        let view = |sort, filter: &str, is_typing, is_paused| View {
            sort,
            filter: filter.to_owned(),
            is_typing,
            is_paused,
        };
        for (keys, expected, ends) in [
            ("", View::default(), false),
            ("q", View::default(), true),
            ("\u{1b}", View::default(), true),
            ("/q\u{3}", view(Sort::Waiting, "q", true, false), true),
            ("s", view(Sort::Slowest, "", false, false), false),
            ("ssss", View::default(), false),
            ("p", view(Sort::Waiting, "", false, true), false),
            ("pp", View::default(), false),
            ("/Shop\u{8}\n", view(Sort::Waiting, "sho", false, false), false),
            ("/s\ns", view(Sort::Slowest, "s", false, false), false),
            ("/shop\u{1b}", View::default(), false),
        ] {
            assert_eq!(pressed(keys), (expected, ends), "{keys:?}");
        }
    }

    #[test]
    fn sites_come_as_they_are_wanted() {
        let site = |name: &str, waiting, slot, failed| SiteLine {
            site: name.to_owned(),
            waiting,
            next_slot_in_seconds: slot,
            failed_last_hour: failed,
            ..SiteLine::default()
        };
        let sites = vec![
            site("b.test", 5, Some(0.0), 0),
            site("c.test", 0, None, 3),
            site("a.test", 5, Some(9.0), 1),
            site("d.other", 70, Some(1.0), 0),
        ];
        let snapshot = StoreSnapshot { sites, ..StoreSnapshot::default() };
        for (sort, filter, expected) in [
            (Sort::Waiting, "", "d.other a.test b.test c.test"),
            (Sort::Slowest, "", "c.test a.test d.other b.test"),
            (Sort::Failures, "", "c.test a.test b.test d.other"),
            (Sort::Name, "test", "a.test b.test c.test"),
            (Sort::Name, "nowhere", ""),
        ] {
            let view = View { sort, filter: filter.to_owned(), ..View::default() };
            let names: Vec<&str> =
                view.sites(&snapshot).iter().map(|site| site.site.as_str()).collect();
            assert_eq!(names.join(" "), expected, "{sort:?} {filter:?}");
        }
    }
}

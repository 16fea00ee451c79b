//! The demo as it is watched: on a screen of its own, or line by line.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::board::Snapshot;
use super::events::Events;
use super::frame::frame;
use crate::cli::GlobalFlags;
use crate::settings::Settings;
use crate::signals::{AT_ONCE, stop_on_signal_and};
use crate::telemetry;
use crate::terminal::{self, Key, Screen};

/// How often the screen is drawn.
const FRAME_EVERY: Duration = Duration::from_millis(100);
/// How often a line of progress is written where there is no screen.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Lines of the log that a screen can use.
const EVENTS_SHOWN: usize = 20;

/// Where the demo is watched: on a screen, or as lines of the log.
pub(super) struct Show {
    screen: Option<(Screen, Events)>,
    /// Cancelled when somebody wants it to stop.
    pub(super) stop: CancellationToken,
    folder: PathBuf,
}

impl Show {
    pub(super) fn new(flags: &GlobalFlags, settings: &Settings, folder: &TempDir) -> Show {
        let no_color =
            flags.no_color || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let wanted = !flags.json && !no_color && flags.quiet == 0 && Screen::is_possible();
        let screen = wanted.then(Screen::open).and_then(Result::ok);
        let folder = folder.path().to_owned();
        let (left_behind, has_screen) = (folder.clone(), screen.is_some());
        let stop = stop_on_signal_and(move || at_once(&left_behind, has_screen));
        let screen = screen.map(|screen| (screen, Events::default()));
        match &screen {
            Some((_, events)) => events.listen(),
            None => telemetry::start(flags, settings.values.log_format),
        }
        Show { screen, stop, folder }
    }

    /// How often it wants to be shown something.
    pub(super) fn every(&self) -> Duration {
        if self.screen.is_some() { FRAME_EVERY } else { LINE_EVERY }
    }

    pub(super) fn show(&self, snapshot: &Snapshot) -> io::Result<()> {
        let Some((_, events)) = &self.screen else {
            say(snapshot);
            return Ok(());
        };
        for _ in Screen::keys().into_iter().filter(is_to_stop) {
            if self.stop.is_cancelled() {
                at_once(&self.folder, true);
                std::process::exit(AT_ONCE);
            }
            self.stop.cancel();
        }
        let (width, height) = Screen::size();
        Screen::draw(&frame(snapshot, &events.last(EVENTS_SHOWN), width, height))
    }
}

fn is_to_stop(key: &Key) -> bool {
    matches!(key, Key::Char('q' | 'Q') | Key::Escape | Key::Interrupt)
}

fn say(snapshot: &Snapshot) {
    let Snapshot { total, skipped, failed, under_way, judgement, .. } = snapshot;
    info!(
        "{:.0} s: {} of {total} have their result ({skipped} skipped, {failed} failed), \
         {under_way} in flight; {} requests, {} too early",
        snapshot.elapsed.as_secs_f64(),
        snapshot.finished(),
        judgement.requests,
        judgement.too_early
    );
}

/// What must be put in order when there is no time for anything else.
fn at_once(folder: &Path, has_screen: bool) {
    if has_screen {
        terminal::give_back();
    }
    // The system clears such folders away too, if later.
    drop(std::fs::remove_dir_all(folder));
}

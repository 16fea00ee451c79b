//! Shows the demo on a full screen or line by line.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_settings::Settings;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::board::DemoSnapshot;
use super::events::Events;
use super::frame::frame;
use crate::console::logs::{self, LogOptions};
use crate::console::signals::{AT_ONCE, sleep_unless_stopped, stop_on_signal_and};
use crate::console::terminal::{self, Key, Screen};

const FRAME_EVERY: Duration = Duration::from_millis(100);
/// How often progress is logged if there is no screen.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// The number of log lines passed to the screen.
const EVENTS_SHOWN: usize = 20;

/// Where the demo is shown: on a screen, or as log lines.
pub(super) struct Show {
    screen: Option<(Screen, Events)>,
    /// Someone is at a terminal and reads the log.
    is_watched: bool,
    /// Cancelled when the user wants it to stop.
    pub(super) stop: CancellationToken,
    folder: PathBuf,
}

impl Show {
    pub(super) fn new(
        log_options: LogOptions,
        as_json: bool,
        settings: &Settings,
        folder: &TempDir,
    ) -> Show {
        let is_watched = !as_json && log_options.quiet == 0 && terminal::is_watched();
        let wanted = is_watched && !log_options.no_color && Screen::is_possible();
        let screen = wanted.then(Screen::open).and_then(Result::ok);
        let folder = folder.path().to_owned();
        let left_behind = folder.clone();
        let has_screen = screen.is_some();
        let stop = stop_on_signal_and(move || at_once(&left_behind, has_screen));
        let screen = screen.map(|screen| (screen, Events::default()));
        match &screen {
            Some((_, events)) => events.listen(),
            None => logs::start(log_options, settings.values.log_format),
        }
        Show { screen, is_watched, stop, folder }
    }

    /// How often [`Show::show`] should be called.
    pub(super) fn every(&self) -> Duration {
        if self.screen.is_some() { FRAME_EVERY } else { LINE_EVERY }
    }

    pub(super) fn show(&self, snapshot: &DemoSnapshot) -> io::Result<()> {
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
        draw(snapshot, events)
    }

    /// Keeps the last frame and the dashboard until a key is pressed or a signal arrives. Returns at once if nobody is
    /// at a terminal.
    pub(super) async fn stay(&self, last: &DemoSnapshot) -> io::Result<()> {
        let Some((_, events)) = &self.screen else {
            if self.is_watched {
                info!("done; the dashboard stays at {} until you press Enter", last.dashboard);
                self.stop.run_until_cancelled(enter_pressed()).await;
            }
            return Ok(());
        };
        while !self.stop.is_cancelled() {
            // Drawn repeatedly, because the terminal may be resized.
            draw(last, events)?;
            if !Screen::keys().is_empty() {
                break;
            }
            sleep_unless_stopped(FRAME_EVERY, &self.stop).await;
        }
        Ok(())
    }
}

fn draw(snapshot: &DemoSnapshot, events: &Events) -> io::Result<()> {
    Screen::draw(|width, height| frame(snapshot, &events.last(EVENTS_SHOWN), width, height))
}

/// Waits for a line on standard input, or its end.
async fn enter_pressed() {
    let (pressed, waits) = oneshot::channel();
    // In its own thread, which does not keep the program from exiting.
    std::thread::spawn(move || {
        io::stdin().read_line(&mut String::new()).unwrap_or_default();
        pressed.send(()).unwrap_or_default();
    });
    waits.await.unwrap_or_default();
}

fn is_to_stop(key: &Key) -> bool {
    matches!(key, Key::Char('q' | 'Q') | Key::Escape | Key::Interrupt)
}

fn say(snapshot: &DemoSnapshot) {
    let DemoSnapshot { total, skipped, failed, under_way, judgement, .. } = snapshot;
    info!(
        "{:.0} s: {} of {total} have a result ({skipped} skipped, {failed} failed), {under_way} in \
         flight; {} requests, {} too early",
        snapshot.elapsed.as_secs_f64(),
        snapshot.finished(),
        judgement.requests,
        judgement.too_early
    );
}

/// The cleanup that is needed even on an immediate exit.
fn at_once(folder: &Path, has_screen: bool) {
    if has_screen {
        terminal::give_back();
    }
    // If this fails, the system removes temporary folders later.
    drop(std::fs::remove_dir_all(folder));
}

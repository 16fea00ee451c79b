//! `fetchwell top`: a live view of a store. `watched_store` reads it, `snapshot` is its state, `view` holds the user's
//! choices, and `frame` renders both.

pub(crate) mod args;
mod frame;
mod snapshot;
mod view;
mod watched_store;

use std::time::Duration;

use fetchwell_settings::Settings;
use tokio::time::{Instant, sleep};

use crate::commands::top::args::TopArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print_either};
use crate::console::signals::stop_on_signal_and;
use crate::console::terminal::{self, Screen};
use frame::{frame, page};
use view::View;
use watched_store::WatchedStore;

/// How often keys are read.
const KEYS_EVERY: Duration = Duration::from_millis(50);
/// The time between the two glances from which `--once` computes rates.
const ONCE_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn run<'a>(settings: &'a Settings, args: &'a TopArgs, as_json: bool) -> Running<'a> {
    Box::pin(async move {
        let store = WatchedStore::open(settings).await?;
        if args.once || as_json {
            return once(&store, as_json).await;
        }
        if !Screen::is_possible() {
            return Err(Exit::Usage(
                "a live view needs a terminal; use --once for one frame, or --json for one object"
                    .into(),
            ));
        }
        watch(&store, Duration::from_secs(args.interval.into())).await
    })
}

async fn once(store: &WatchedStore, as_json: bool) -> Result<Exit, Exit> {
    let earlier = store.look("").await?;
    let began = Instant::now();
    sleep(ONCE_AFTER).await;
    let mut snapshot = store.look("").await?;
    snapshot.note_rates(&earlier, began.elapsed());
    print_either(as_json, &snapshot, page(&snapshot, &View::default()))
}

async fn watch(store: &WatchedStore, every: Duration) -> Result<Exit, Exit> {
    let mut snapshot = store.look("").await?;
    let mut looked = Instant::now();
    let screen = Screen::open()?;
    let stop = stop_on_signal_and(terminal::give_back);
    let mut view = View::default();
    while !stop.is_cancelled() && !Screen::keys().into_iter().any(|key| view.press(key)) {
        if !view.is_paused && looked.elapsed() >= every {
            let mut now = store.look(&view.filter).await?;
            now.note_rates(&snapshot, looked.elapsed());
            snapshot = now;
            looked = Instant::now();
        }
        Screen::draw(|width, height| frame(&snapshot, &view, width, height))?;
        sleep(KEYS_EVERY).await;
    }
    drop(screen);
    Ok(Exit::Ok)
}

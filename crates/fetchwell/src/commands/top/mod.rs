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
use crate::console::output::{Running, print};
use crate::console::signals::stop_on_signal_and;
use crate::console::terminal::{self, Screen};
use frame::{frame, page};
use snapshot::StoreSnapshot;
use view::View;
use watched_store::WatchedStore;

/// How often keys are read.
const KEYS_EVERY: Duration = Duration::from_millis(50);
/// The time between the two glances from which `--once` computes rates.
const ONCE_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn run<'a>(settings: &'a Settings, args: &'a TopArgs, as_json: bool) -> Running<'a> {
    Box::pin(run_inner(settings, args, as_json))
}

async fn run_inner(settings: &Settings, args: &TopArgs, as_json: bool) -> Result<Exit, Exit> {
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
}

async fn once(store: &WatchedStore, as_json: bool) -> Result<Exit, Exit> {
    let earlier = store.look("").await?;
    let began = Instant::now();
    sleep(ONCE_AFTER).await;
    let mut snapshot = store.look("").await?;
    snapshot.note_rates(&earlier, began.elapsed());
    if as_json {
        let object = serde_json::to_string(&snapshot).map_err(anyhow::Error::from)?;
        return print(format!("{object}\n").as_bytes());
    }
    print(page(&snapshot, &View::default()).as_bytes())
}

async fn watch(store: &WatchedStore, every: Duration) -> Result<Exit, Exit> {
    let mut snapshot = store.look("").await?;
    let mut looked = Instant::now();
    let screen = Screen::open()?;
    let stop = stop_on_signal_and(terminal::give_back);
    let mut view = View::default();
    while !stop.is_cancelled() && !Screen::keys().into_iter().any(|key| view.press(key)) {
        if !view.is_paused && looked.elapsed() >= every {
            (snapshot, looked) = look_again(store, &view, &snapshot, looked).await?;
        }
        let (width, height) = Screen::size();
        Screen::draw(&frame(&snapshot, &view, width, height))?;
        sleep(KEYS_EVERY).await;
    }
    drop(screen);
    Ok(Exit::Ok)
}

async fn look_again(
    store: &WatchedStore,
    view: &View,
    earlier: &StoreSnapshot,
    looked: Instant,
) -> Result<(StoreSnapshot, Instant), Exit> {
    let mut snapshot = store.look(&view.filter).await?;
    snapshot.note_rates(earlier, looked.elapsed());
    Ok((snapshot, Instant::now()))
}

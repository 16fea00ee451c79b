//! The callers of `serve`: they post messages, and read their results with a cursor.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::inbox::NewMessage;
use crate::machine::{Machine, Process};
use crate::network::{Link, Store};
use crate::scenario::Feature;
use crate::sim::Sim;
use crate::web::group_of;
use crate::workload::url;

/// The deadline of messages that ask for no other.
const DEADLINE: Duration = Duration::from_hours(1);
/// How many messages a caller posts together at most.
const MOST_POSTED: usize = 8;
/// How many results a caller reads at once at most.
const MOST_READ: usize = 20;

/// A caller, with what it remembers over the crashes of its processes.
pub(crate) struct Client {
    name: &'static str,
    sim: Arc<Sim>,
    machine: Arc<Machine>,
    state: Mutex<ClientState>,
}

#[derive(Default)]
struct ClientState {
    /// The messages that the service has accepted, as far as the caller knows.
    accepted: BTreeSet<LeaseId>,
    has_posted_all: bool,
    /// The cursor of the last result.
    cursor: i64,
    /// The messages whose results it has.
    results: BTreeSet<LeaseId>,
}

impl Client {
    pub(crate) fn new(sim: &Arc<Sim>, name: &'static str) -> Client {
        let machine = Arc::new(Machine::new(sim, name.to_owned()));
        Client { name, sim: sim.clone(), machine, state: Mutex::default() }
    }

    /// Makes a call until it is answered. After a crash, another process goes on.
    async fn until_answered<T: Send + 'static>(
        &self,
        dice: &mut Dice,
        what: &'static str,
        serve: impl Fn() -> Result<T, StoreError> + Clone + Send + 'static,
    ) -> T {
        loop {
            let process =
                Process::new(self.name.to_owned(), &self.machine, CancellationToken::new());
            let process = Arc::new(process);
            let network = Dice::new(dice.seed(), "link");
            let link = Link::new(self.sim.clone(), process.clone(), network);
            let again_in = dice.ms(100, 5_000);
            tokio::select! {
                biased;
                answer = link.call(Store::Queues, what, serve.clone()) => {
                    if let Ok(answer) = answer {
                        return answer;
                    }
                }
                () = process.is_dead() => {}
            }
            sleep(again_in).await;
        }
    }

    /// Posts its share of the messages, in batches over the first half of the run.
    pub(crate) async fn post_messages(self: Arc<Self>, mut left: usize) {
        let seed = self.sim.scenario.seed;
        let mut dice = Dice::new(seed, self.name);
        let mut network = Dice::new(seed, &format!("posts of {}", self.name));
        let half_ms = self.sim.scenario.troubled_for.as_millis() / 2;
        let half_ms = usize::try_from(half_ms).unwrap_or(usize::MAX);
        for key in 0.. {
            let count = dice.number(1, MOST_POSTED).min(left);
            let Some(rest) = left.checked_sub(count).filter(|_| count > 0) else { break };
            left = rest;
            let messages: Vec<NewMessage> =
                (0..count).map(|number| self.message(left + number, &mut dice)).collect();
            self.sim.note(self.name, "post", format_args!("{count} messages with key {key}"));
            let inbox = self.sim.inbox.clone();
            let caller = self.name;
            let submit = move || Ok(inbox.submit(caller, key, &messages));
            let ids = self.until_answered(&mut network, "a submission", submit).await;
            self.sim.note(self.name, "posted", format_args!("{ids:?}"));
            self.state.lock().accepted.extend(ids);
            sleep(dice.ms(0, half_ms / 4)).await;
        }
        self.state.lock().has_posted_all = true;
    }

    fn message(&self, number: usize, dice: &mut Dice) -> NewMessage {
        let url = url(&self.sim, number, dice);
        let is_short = dice.happens(0.3) && self.sim.has(Feature::Deadlines);
        let short = dice.seconds(1, 600);
        let retailer = group_of(&url);
        let deadline_in = if is_short { short } else { DEADLINE };
        NewMessage { url, retailer, deadline_in }
    }

    /// Reads results until `is_over`, and checks that none is missing or comes twice.
    pub(crate) async fn read_results(self: Arc<Self>, is_over: CancellationToken) {
        let mut dice = Dice::new(self.sim.scenario.seed, &format!("reads of {}", self.name));
        while !is_over.is_cancelled() {
            let after = self.state.lock().cursor;
            let most = dice.number(1, MOST_READ);
            let inbox = self.sim.inbox.clone();
            let caller = self.name;
            let read = move || Ok(inbox.read(caller, after, most));
            let page = self.until_answered(&mut dice, "a read of results", read).await;
            for (cursor, id) in page {
                self.on_result(cursor, id);
            }
            sleep(dice.ms(100, 20_000)).await;
        }
    }

    fn on_result(&self, cursor: i64, id: LeaseId) {
        let mut state = self.state.lock();
        let expected = state.cursor + 1;
        state.cursor = cursor;
        let is_new = state.results.insert(id);
        drop(state);
        let name = self.name;
        self.sim.note(name, "result", format_args!("{id} with cursor {cursor}"));
        if cursor != expected {
            self.sim.fail("messages", &format!("{name} got cursor {cursor} instead of {expected}"));
        }
        if !is_new {
            self.sim.fail("messages", &format!("{name} got a second result of message {id}"));
        }
    }

    /// Whether it has posted everything, and has the results of all its messages.
    pub(crate) fn has_everything(&self) -> bool {
        let state = self.state.lock();
        state.has_posted_all && state.results.len() == self.sim.inbox.sent(self.name).len()
    }

    /// At the end: it has one result for each message that the service accepted, as far as it knows.
    pub(crate) fn at_the_end(&self) -> Result<(), String> {
        let state = self.state.lock();
        match state.accepted.difference(&state.results).next() {
            Some(id) => Err(format!("{} has no result for message {id}", self.name)),
            None => Ok(()),
        }
    }
}

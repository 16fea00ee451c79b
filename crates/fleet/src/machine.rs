//! Machines: each runs one process after another, which crash, are suspended, lose their network, and start again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::RunEnd;
use fetchwell_policy::time::Time;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::doors::{DoorKind, run};
use crate::scenario::Feature;
use crate::sim::{BEGINS_AT, STOPPED, Sim};

/// What may happen to a machine from outside.
pub(crate) struct Machine {
    pub(crate) name: String,
    /// Its clock since boot never jumps; its wall clock does.
    pub(crate) clock: Clock,
    /// How far its wall clock has jumped, in microseconds.
    jumped_us: Arc<AtomicI64>,
    state: Mutex<MachineState>,
}

#[derive(Default)]
struct MachineState {
    suspended_until: Option<Instant>,
    cut_off_until: Option<Instant>,
    process: Option<Arc<Process>>,
}

impl Machine {
    pub(crate) fn new(sim: &Arc<Sim>, name: String) -> Machine {
        let since_boot = clock_of(sim, &name);
        let jumped_us: Arc<AtomicI64> = Arc::default();
        let wall = {
            let since_boot = since_boot.clone();
            let jumped_us = jumped_us.clone();
            let jumped = move || jumped_us.load(Ordering::Relaxed);
            move || Time::from_micros(since_boot.now().as_micros() + jumped())
        };
        let clock = since_boot.with_wall(wall);
        Machine { name, clock, jumped_us, state: Mutex::default() }
    }

    pub(crate) fn suspend(&self, lasts: Duration) {
        self.state.lock().suspended_until = Some(Instant::now() + lasts);
    }

    pub(crate) fn cut_off(&self, lasts: Duration) {
        self.state.lock().cut_off_until = Some(Instant::now() + lasts);
    }

    pub(crate) fn set_wall_clock_ahead_by_us(&self, ahead_us: i64) {
        self.jumped_us.store(ahead_us, Ordering::Relaxed);
    }

    pub(crate) fn repair(&self) {
        let mut state = self.state.lock();
        state.suspended_until = None;
        state.cut_off_until = None;
    }

    /// Kills its process, if one runs.
    pub(crate) fn crash(&self) {
        if let Some(process) = &self.state.lock().process {
            process.kill();
        }
    }

    /// Stops its process gracefully, if one runs.
    pub(crate) fn stop(&self) {
        if let Some(process) = &self.state.lock().process {
            process.stop.cancel();
        }
    }
}

/// The clock of a machine: with [`Feature::Clocks`], it is off by up to a minute, and up to 200 ppm fast or slow.
fn clock_of(sim: &Arc<Sim>, name: &str) -> Clock {
    let mut dice = Dice::new(sim.scenario.seed, &format!("clock of {name}"));
    let ahead_us = i64::try_from(dice.ms(0, 120_000).as_micros()).unwrap_or(0) - 60_000_000;
    let drift_ppm = i64::try_from(dice.below(401)).unwrap_or(0) - 200;
    let is_off = sim.has(Feature::Clocks);
    let sim = sim.clone();
    Clock::new(move || {
        let now = sim.clock.now();
        sim.on_clock_read(now);
        if !is_off {
            return now;
        }
        let passed_us = now.as_micros() - BEGINS_AT.as_micros();
        Time::from_micros(now.as_micros() + ahead_us + passed_us * drift_ppm / 1_000_000)
    })
}

/// A process on a machine.
pub(crate) struct Process {
    /// The machine, and the number of the process on it.
    pub(crate) name: String,
    pub(crate) machine: Arc<Machine>,
    dead: CancellationToken,
    pub(crate) stop: CancellationToken,
}

impl Process {
    pub(crate) fn new(name: String, machine: &Arc<Machine>, stop: CancellationToken) -> Process {
        Process { name, machine: machine.clone(), dead: CancellationToken::new(), stop }
    }

    /// Returns when it was killed.
    pub(crate) async fn is_dead(&self) {
        self.dead.cancelled().await;
    }

    pub(crate) fn kill(&self) {
        self.dead.cancel();
    }

    /// Whether it has no connection to the stores.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.machine.state.lock().cut_off_until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits until the process runs; forever if it is dead.
    pub(crate) async fn runs(&self) {
        loop {
            if self.dead.is_cancelled() {
                return std::future::pending().await;
            }
            let until = self.machine.state.lock().suspended_until;
            match until {
                Some(until) if Instant::now() < until => sleep_until(until).await,
                _ => return,
            }
        }
    }
}

/// Runs processes with a door on a machine until `is_over`.
pub(crate) async fn live(
    sim: Arc<Sim>,
    machine: Arc<Machine>,
    door: DoorKind,
    is_over: CancellationToken,
) {
    let mut dice = Dice::new(sim.scenario.seed, &machine.name);
    for number in 1.. {
        let name = format!("{}.{number}", machine.name);
        let process = Arc::new(Process::new(name, &machine, is_over.child_token()));
        machine.state.lock().process = Some(process.clone());
        sim.note(&process.name, "start", format_args!("{door:?}"));
        let mut running = tokio::spawn(run(sim.clone(), process.clone(), door, dice.clone()));
        let ended = tokio::select! {
            biased;
            ended = &mut running => Some(ended),
            () = process.dead.cancelled() => None,
        };
        machine.state.lock().process = None;
        match ended {
            None => {
                sim.on_process_over(&process, "dead");
                running.abort();
                drop(running.await);
            }
            Some(Ok(Ok(RunEnd::Stopped))) => {
                sim.on_process_over(&process, STOPPED);
            }
            Some(other) => {
                sim.fail("processes", &format!("{} ended with {other:?}", process.name));
            }
        }
        if is_over.is_cancelled() {
            return;
        }
        dice.seed(); // The next process makes other choices.
        sleep(dice.ms(10, 45_000)).await;
    }
}

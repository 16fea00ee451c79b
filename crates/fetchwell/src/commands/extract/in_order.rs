//! Works on items in parallel, and returns the results in the order of the items.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::Context;
use parking_lot::Mutex;

/// Items that are in memory at the same time, per worker: one in work, and one that waits or is done.
const ITEMS_PER_WORKER: usize = 2;

const PANICKED: &str = "a thread panicked; please report this as a bug of Fetchwell";

/// The results, in order. If nobody reads them, the workers stop.
pub(super) struct Results<R> {
    queue: Receiver<Receiver<R>>,
    producer: Option<thread::JoinHandle<()>>,
}

/// Starts a thread that produces items and several that work on them. They are not joined when the results are
/// dropped, because the producer may be waiting for input.
pub(super) fn in_order<T: Send + 'static, R: Send + 'static>(
    workers: usize,
    produce: impl FnOnce(&dyn Fn(T) -> ControlFlow<()>) + Send + 'static,
    work: impl Fn(T) -> R + Send + Sync + 'static,
) -> io::Result<Results<R>> {
    let (queued, queue) = sync_channel(workers * ITEMS_PER_WORKER);
    let (jobs, next_job) = sync_channel::<(T, SyncSender<R>)>(workers);
    let next_job = Arc::new(Mutex::new(next_job));
    let work = Arc::new(work);
    for _ in 0..workers {
        let next_job = next_job.clone();
        let work = work.clone();
        thread::Builder::new().name("extract".to_owned()).spawn(move || {
            loop {
                let job = next_job.lock().recv();
                let Ok((item, result)) = job else { break };
                // Fails if the results are no longer wanted.
                drop(result.send(work(item)));
            }
        })?;
    }
    let emit = move |item| {
        let (result, receiver) = sync_channel(1);
        let is_wanted = queued.send(receiver).is_ok() && jobs.send((item, result)).is_ok();
        if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let producer = thread::Builder::new().name("read".to_owned()).spawn(move || produce(&emit))?;
    Ok(Results { queue, producer: Some(producer) })
}

impl<R> Results<R> {
    /// The next result; `None` at the end. An error means that a thread panicked, which has printed why.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<R>> {
        if let Ok(result) = self.queue.recv() {
            return result.recv().map(Some).context(PANICKED);
        }
        match self.producer.take().map(thread::JoinHandle::join) {
            Some(Err(_)) => anyhow::bail!(PANICKED),
            Some(Ok(())) | None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        for workers in [1, 3, 8] {
            let produce = |emit: &dyn Fn(u64) -> ControlFlow<()>| {
                for number in 0..500 {
                    assert!(emit(number).is_continue());
                }
            };
            // Some items take much longer than others.
            let work = |number: u64| (0..(number % 7) * 10_000).fold(number, |sum, _| sum | number);
            let mut results = in_order(workers, produce, work).unwrap();
            for number in 0..500 {
                assert_eq!(results.next().unwrap(), Some(number));
            }
            assert_eq!(results.next().unwrap(), None);
            assert_eq!(results.next().unwrap(), None);
        }
    }

    #[test]
    fn a_panic_is_an_error_and_not_the_end() {
        let produce = |emit: &dyn Fn(u64) -> ControlFlow<()>| assert!(emit(1).is_continue());
        let mut results = in_order(1, produce, |_| -> u64 { panic!("on purpose") }).unwrap();
        assert!(results.next().is_err());
        let mut results =
            in_order(1, |_: &dyn Fn(u64) -> ControlFlow<()>| panic!("on purpose"), |one| one)
                .unwrap();
        assert!(results.next().is_err());
    }

    #[test]
    fn the_producer_stops_when_nobody_wants_results() {
        let (stopped, wait) = sync_channel(1);
        let produce = move |emit: &dyn Fn(u64) -> ControlFlow<()>| {
            while emit(1).is_continue() {}
            stopped.send(()).unwrap();
        };
        drop(in_order(2, produce, |one| one).unwrap());
        wait.recv().unwrap();
    }
}

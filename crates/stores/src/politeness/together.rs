//! Questions that are asked together: while one answer is under way, others gather, and go as one.

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

/// Gathers questions.
pub(super) struct Together<Q, A> {
    gathered: Mutex<Vec<Waiting<Q, A>>>,
    asking: AsyncMutex<()>,
}

struct Waiting<Q, A> {
    question: Q,
    answer: oneshot::Sender<A>,
}

impl<Q, A> Default for Together<Q, A> {
    fn default() -> Together<Q, A> {
        Together { gathered: Mutex::default(), asking: AsyncMutex::default() }
    }
}

impl<Q, A> Together<Q, A> {
    /// Asks, with all who wait to ask; `ask_all` has an answer for each. `None`: it went with somebody
    /// else's, who was stopped.
    pub(super) async fn ask(
        &self,
        question: Q,
        ask_all: impl AsyncFnOnce(&[Q]) -> Vec<A>,
    ) -> Option<A> {
        let (answer, mut answered) = oneshot::channel();
        self.gathered().push(Waiting { question, answer });
        let _asking = tokio::select! {
            biased;
            answer = &mut answered => return answer.ok(),
            asking = self.asking.lock() => asking,
        };
        match answered.try_recv() {
            Ok(answer) => return Some(answer), // It went with the one before.
            Err(TryRecvError::Closed) => return None,
            Err(TryRecvError::Empty) => {}
        }
        let gathered = std::mem::take(&mut *self.gathered());
        let (questions, waiting): (Vec<Q>, Vec<oneshot::Sender<A>>) =
            gathered.into_iter().map(|one| (one.question, one.answer)).unzip();
        for (waits, answer) in waiting.into_iter().zip(ask_all(&questions).await) {
            drop(waits.send(answer)); // Who has gone does not want to know.
        }
        answered.try_recv().ok()
    }

    fn gathered(&self) -> MutexGuard<'_, Vec<Waiting<Q, A>>> {
        self.gathered.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_comes_while_somebody_asks_goes_with_the_next() {
        let together: Arc<Together<u32, u32>> = Arc::default();
        let batches: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
        let ask = |question: u32| {
            let together = together.clone();
            let batches = batches.clone();
            tokio::spawn(async move {
                let ask_all = async |questions: &[u32]| {
                    batches.lock().push(questions.to_vec());
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    questions.iter().map(|question| question * 10).collect()
                };
                together.ask(question, ask_all).await
            })
        };
        let asked: Vec<_> = (1..=4).map(ask).collect();
        for (question, asked) in (1..=4).zip(asked) {
            assert_eq!(asked.await.unwrap(), Some(question * 10));
        }
        assert_eq!(*batches.lock(), [vec![1], vec![2, 3, 4]]);
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_asker_is_stopped_the_others_hear_of_it_and_new_ones_can_ask() {
        let together: Arc<Together<u32, u32>> = Arc::default();
        let ask = |question: u32, takes: Duration| {
            let together = together.clone();
            tokio::spawn(async move {
                let ask_all = async |questions: &[u32]| {
                    tokio::time::sleep(takes).await;
                    questions.to_vec()
                };
                together.ask(question, ask_all).await
            })
        };
        let first = ask(1, Duration::from_secs(1));
        let second = ask(2, Duration::from_secs(60));
        let third = ask(3, Duration::ZERO);
        assert_eq!(first.await.unwrap(), Some(1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        second.abort();
        assert_eq!(third.await.unwrap(), None);
        assert_eq!(ask(4, Duration::ZERO).await.unwrap(), Some(4));
    }
}

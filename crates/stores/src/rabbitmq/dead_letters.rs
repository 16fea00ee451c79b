//! Dead letters: batches that were given up, in a separate queue.
//!
//! AMQP cannot read a queue without taking from it, and queues with a delivery limit drop a message that is returned
//! too often. So listing republishes each letter, to the end of the same queue or to the queue of batches. The broker
//! confirms the new message before the old one is acknowledged, so a crash in between leaves two copies, never none.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::batches::{DeadBatch, DeadBatches, RetriedBatches};
use fetchwell_engine::ports::error::StoreError;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicGetOptions};
use lapin::{Channel, Connection};
use tokio::time::timeout;

use super::RabbitQueue;
use super::message::{self, Outgoing, name_of, reason_of};

/// The number of letters moved at once, which limits the bodies in memory.
const LETTERS_AT_ONCE: u64 = 64;
/// The longest wait for a connection to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Where to move a letter.
enum Place {
    /// To the end of the queue that it is on.
    Stays,
    /// To the queue of batches, with its history reset.
    Again,
}

#[async_trait]
impl DeadBatches for RabbitQueue {
    async fn dead_batches(&self) -> Result<Vec<DeadBatch>, StoreError> {
        let mut letters = Vec::new();
        let stays = |letter: DeadBatch| {
            letters.push(letter);
            Place::Stays
        };
        self.move_letters(stays).await?;
        Ok(letters)
    }

    async fn retry_dead(&self, ids: Option<&[String]>) -> Result<RetriedBatches, StoreError> {
        let mut count = 0;
        let mut unknown: HashSet<&String> = ids.unwrap_or_default().iter().collect();
        let place = |letter: DeadBatch| match ids.is_none_or(|ids| ids.contains(&letter.id)) {
            true => {
                count += 1;
                unknown.remove(&letter.id);
                Place::Again
            }
            false => Place::Stays,
        };
        self.move_letters(place).await?;
        let mut unknown: Vec<String> = unknown.into_iter().cloned().collect();
        unknown.sort_unstable();
        Ok(RetriedBatches { count, unknown })
    }
}

impl RabbitQueue {
    /// Moves each of the current letters once. Letters that arrive meanwhile stay where they are.
    async fn move_letters(
        &self,
        mut place_of: impl FnMut(DeadBatch) -> Place + Send,
    ) -> Result<(), StoreError> {
        let mut left = self.dead().await?;
        if left == 0 {
            return Ok(());
        }
        let connection = self.link.connect("dead letters").await?;
        let channel = self.link.answered(connection.create_channel()).await?;
        while left > 0 {
            let letters = self.get(&channel, left.min(LETTERS_AT_ONCE)).await?;
            if letters.is_empty() {
                break; // Another process has taken them.
            }
            left = left.saturating_sub(letters.len() as u64);
            let outgoing = |letter| self.outgoing(letter, &mut place_of);
            let moved: Vec<Outgoing<'_>> = letters.iter().map(outgoing).collect();
            self.publisher.publish(&moved).await?;
            for letter in &letters {
                self.link.answered(letter.acker.ack(BasicAckOptions::default())).await?;
            }
        }
        close(&connection).await;
        Ok(())
    }

    async fn get(&self, channel: &Channel, most: u64) -> Result<Vec<Delivery>, StoreError> {
        let mut letters = Vec::new();
        for _ in 0..most {
            let options = BasicGetOptions { no_ack: false };
            let got = channel.basic_get(self.names.dead.clone(), options);
            match self.link.answered(got).await? {
                Some(message) => letters.push(message.delivery),
                None => break,
            }
        }
        Ok(letters)
    }

    fn outgoing<'a>(
        &'a self,
        letter: &'a Delivery,
        place_of: &mut impl FnMut(DeadBatch) -> Place,
    ) -> Outgoing<'a> {
        let Delivery { properties, data, .. } = letter;
        let batch = DeadBatch { id: name_of(properties, data), reason: reason_of(properties) };
        let (queue, properties) = match place_of(batch) {
            Place::Stays => (&self.names.dead, message::lasting(properties.clone())),
            Place::Again => (&self.names.queue, message::fresh(properties)),
        };
        Outgoing { queue, body: data, properties }
    }
}

/// All letters are acknowledged by now, so errors do not matter.
async fn close(connection: &Connection) {
    drop(timeout(CLOSE_WITHIN, connection.close(200, "done".into())).await);
}

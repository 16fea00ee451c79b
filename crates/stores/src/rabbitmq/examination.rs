//! What a broker says of a queue, for those who look after it. Nothing is changed.

use fetchwell_engine::ports::error::StoreError;

use super::declare::{Names, depth, is_durable, is_there};
use super::link::Link;

/// What a broker says of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RabbitFacts {
    /// The queue; `None`: there is none of that name.
    pub queue: Option<QueueFacts>,
}

/// A queue as it was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFacts {
    /// Whether it outlives the broker.
    pub is_durable: bool,
    /// How many messages wait in it.
    pub waiting: u64,
}

/// Connects and asks.
pub async fn examine(url: &str, queue: &str) -> Result<RabbitFacts, StoreError> {
    let link = Link::to(url)?;
    let names = Names::of(queue, false)?;
    let connection = link.connect("doctor").await?;
    let asked = async {
        if !is_there(&connection, &names.queue).await? {
            return Ok(RabbitFacts { queue: None });
        }
        // A queue that is there is not made: the broker agrees, or says what differs.
        let is_durable = is_durable(&connection, &names.queue).await?;
        let waiting = depth(&connection.create_channel().await?, &names.queue).await?;
        Ok(RabbitFacts { queue: Some(QueueFacts { is_durable, waiting }) })
    };
    let facts = asked.await.map_err(|error| link.fault(error))?;
    // Whether it ends politely changes nothing any more.
    drop(connection.close(200, "looked".into()).await);
    Ok(facts)
}

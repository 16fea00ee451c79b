//! Declares queues: an existing queue is used as it is, a missing one is created.

use fetchwell_engine::ports::error::StoreError;
use lapin::options::QueueDeclareOptions;
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};
use tracing::warn;

use super::errors::{NOT_FOUND, PRECONDITION_FAILED, code_of};

/// The names of the queue and of its dead-letter queue.
pub(super) struct Names {
    pub(super) queue: ShortString,
    pub(super) dead: ShortString,
    /// Whether a missing queue is created as the original programs do it: it does not survive a broker restart.
    transient: bool,
}

impl Names {
    pub(super) fn of(queue: &str, transient: bool) -> Result<Names, StoreError> {
        let name = |text: String| {
            ShortString::try_new(text)
                .map_err(|_| StoreError::incompatible("the name of a queue has at most 255 bytes"))
        };
        Ok(Names {
            queue: name(queue.to_owned())?,
            dead: name(format!("{queue}.dead"))?,
            transient,
        })
    }
}

/// Makes sure that both queues exist.
pub(super) async fn ensure(connection: &Connection, names: &Names) -> lapin::Result<()> {
    let durable = QueueDeclareOptions::durable();
    if is_there(connection, &names.queue).await? {
        if !is_durable(connection, &names.queue).await? {
            warn!(
                "the RabbitMQ queue {} is not durable: its messages are lost when the broker \
                 restarts; to get a durable one, delete it and start this program before any other",
                names.queue
            );
        }
    } else {
        let options = if names.transient { QueueDeclareOptions::default() } else { durable };
        declare(connection, &names.queue, options).await?;
    }
    if !is_there(connection, &names.dead).await? {
        declare(connection, &names.dead, durable).await?;
    }
    Ok(())
}

/// The number of messages waiting in a queue. If this fails, the broker closes the channel.
pub(super) async fn depth(channel: &Channel, queue: &ShortString) -> lapin::Result<u64> {
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare(queue.clone(), passive, FieldTable::default()).await?;
    Ok(queue.message_count().into())
}

pub(super) async fn is_there(connection: &Connection, queue: &ShortString) -> lapin::Result<bool> {
    match depth(&connection.create_channel().await?, queue).await {
        Ok(_) => Ok(true),
        Err(error) if code_of(&error) == Some(NOT_FOUND) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A broker does not report how a queue was declared, but it refuses a different declaration and names the difference.
pub(super) async fn is_durable(
    connection: &Connection,
    queue: &ShortString,
) -> lapin::Result<bool> {
    match declare(connection, queue, QueueDeclareOptions::durable()).await {
        Ok(()) => Ok(true),
        Err(error) if code_of(&error) == Some(PRECONDITION_FAILED) => {
            Ok(!error.to_string().contains("'durable'"))
        }
        Err(error) => Err(error),
    }
}

/// Uses a separate channel, because the broker closes a channel on which it refuses a declaration.
async fn declare(
    connection: &Connection,
    queue: &ShortString,
    options: QueueDeclareOptions,
) -> lapin::Result<()> {
    let channel = connection.create_channel().await?;
    channel.queue_declare(queue.clone(), options, FieldTable::default()).await?;
    channel.close(200, "declared".into()).await
}

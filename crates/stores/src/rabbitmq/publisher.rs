//! Publishes messages: with confirmation, a bounded number at a time, and not while the broker is out of memory or disk
//! space.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use futures::future::try_join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, Connection, PublisherConfirm};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::declare::{self, Names};
use super::link::{ANSWER_WITHIN, AmqpConnection};
use super::message::Outgoing;

/// The maximum number of unconfirmed messages.
const MAX_UNCONFIRMED: usize = 256;
/// How often to check a blocked connection.
const BLOCKED_POLL: Duration = Duration::from_millis(100);

/// Publishes on a separate connection: a broker that is short of memory stops reading from publishing connections,
/// which must not delay acknowledgements.
pub(super) struct Publisher {
    link: AmqpConnection,
    names: Arc<Names>,
    /// Locked while publishing, so that the number of unconfirmed messages stays bounded.
    standing: Mutex<Option<Standing>>,
}

struct Standing {
    connection: Connection,
    channel: Channel,
}

impl Publisher {
    /// Connects, and makes sure that the queues exist.
    pub(super) async fn open(
        link: AmqpConnection,
        names: Arc<Names>,
    ) -> Result<Publisher, StoreError> {
        let publisher = Publisher { link, names, standing: Mutex::default() };
        let standing = publisher.connect().await?;
        *publisher.standing.lock().await = Some(standing);
        Ok(publisher)
    }

    /// Returns once all messages are confirmed.
    pub(super) async fn publish(&self, messages: &[Outgoing<'_>]) -> Result<(), StoreError> {
        self.with_channel(async |standing: &Standing| {
            for some in messages.chunks(MAX_UNCONFIRMED) {
                self.publish_some(standing, some).await?;
            }
            Ok(())
        })
        .await
    }

    /// The number of messages waiting in a queue.
    pub(super) async fn depth(&self, queue: &ShortString) -> Result<u64, StoreError> {
        self.with_channel(async |standing: &Standing| {
            self.link.answered(declare::depth(&standing.channel, queue)).await
        })
        .await
    }

    /// Connects if there is no connection. After an error the next call connects again and makes sure that the queues
    /// exist, because a broker that restarts loses those that are not durable.
    async fn with_channel<T>(
        &self,
        work: impl AsyncFnOnce(&Standing) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut standing = self.standing.lock().await;
        let current = match standing.take() {
            Some(current) if current.channel.status().connected() => current,
            _ => self.connect().await?,
        };
        let done = work(&current).await;
        if done.is_ok() {
            *standing = Some(current);
        }
        done
    }

    async fn connect(&self) -> Result<Standing, StoreError> {
        let connection = self.link.connect("publisher").await?;
        let channel = self.link.answered(self.prepare(&connection)).await?;
        Ok(Standing { connection, channel })
    }

    async fn prepare(&self, connection: &Connection) -> lapin::Result<Channel> {
        declare::ensure(connection, &self.names).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    async fn publish_some(
        &self,
        standing: &Standing,
        messages: &[Outgoing<'_>],
    ) -> Result<(), StoreError> {
        // The broker must return a message that it cannot route, instead of confirming and dropping it.
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let mut confirms = Vec::with_capacity(messages.len());
        for message in messages {
            self.wait_while_blocked(standing).await?;
            let Outgoing { queue, body, properties } = message;
            let exchange = ShortString::default();
            let queue = (*queue).clone();
            let properties = properties.clone();
            let sent = standing.channel.basic_publish(exchange, queue, options, body, properties);
            confirms.push(self.link.answered(sent).await?);
        }
        self.wait_for(standing, confirms).await
    }

    /// A confirmation may take as long as the broker is blocked, but not much longer.
    async fn wait_for(
        &self,
        standing: &Standing,
        confirms: Vec<PublisherConfirm>,
    ) -> Result<(), StoreError> {
        let all = try_join_all(confirms);
        tokio::pin!(all);
        let confirmations = loop {
            match timeout(ANSWER_WITHIN, &mut all).await {
                Ok(all) => break all.map_err(|error| self.link.fault(error))?,
                Err(_) if standing.connection.status().blocked() => {
                    self.wait_while_blocked(standing).await?;
                }
                Err(_) => return Err(self.link.silent()),
            }
        };
        match confirmations.iter().all(|each| matches!(each, Confirmation::Ack(None))) {
            true => Ok(()),
            false => Err(self.link.unavailable(
                "it did not accept a message; perhaps its queue was deleted, and is being created \
                 again",
            )),
        }
    }

    async fn wait_while_blocked(&self, standing: &Standing) -> Result<(), StoreError> {
        let status = standing.connection.status();
        if !status.blocked() {
            return Ok(());
        }
        let address = self.link.address();
        warn!(
            "RabbitMQ at {address} is short of memory or disk space and accepts no messages for \
             now: waiting"
        );
        while status.blocked() {
            if !status.connected() {
                return Err(self.link.unavailable("the connection was lost while it was blocked"));
            }
            sleep(BLOCKED_POLL).await;
        }
        info!("RabbitMQ at {address} accepts messages again");
        Ok(())
    }
}

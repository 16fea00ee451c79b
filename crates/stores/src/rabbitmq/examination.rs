//! Diagnostic facts about a queue at a broker. Read-only.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use lapin::Connection;
use tokio::time::timeout;

use super::declare::{Names, depth, is_durable, is_there};
use super::link::{ANSWER_WITHIN, AmqpConnection};

/// Facts about a queue at a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RabbitFacts {
    /// `None` if the queue does not exist.
    pub queue: Option<QueueFacts>,
}

/// Facts about an existing queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFacts {
    /// Whether it survives a broker restart.
    pub is_durable: bool,
    /// The number of messages waiting in it.
    pub waiting: u64,
}

/// Connects and collects the facts.
pub async fn examine(url: &str, queue: &str) -> Result<RabbitFacts, StoreError> {
    let link = AmqpConnection::to(url)?;
    let names = Names::of(queue, false)?;
    let connection = link.connect("doctor").await?;
    let facts = ask(&link, &connection, &names, ANSWER_WITHIN).await?;
    // Whether closing succeeds no longer matters.
    drop(timeout(ANSWER_WITHIN, connection.close(200, "looked".into())).await);
    Ok(facts)
}

async fn ask(
    link: &AmqpConnection,
    connection: &Connection,
    names: &Names,
    within: Duration,
) -> Result<RabbitFacts, StoreError> {
    let asking = async {
        if !is_there(connection, &names.queue).await? {
            return Ok(RabbitFacts { queue: None });
        }
        // The queue exists, so declaring it creates nothing: the broker accepts the declaration or names the
        // difference.
        let is_durable = is_durable(connection, &names.queue).await?;
        let waiting = depth(&connection.create_channel().await?, &names.queue).await?;
        Ok(RabbitFacts { queue: Some(QueueFacts { is_durable, waiting }) })
    };
    match timeout(within, asking).await {
        Ok(facts) => facts.map_err(|error| link.fault(error)),
        Err(_) => Err(link.silent()),
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_testkit::conformance::servers::server_url;
    use fetchwell_testkit::fault_proxy::{FaultProxy, Faults};
    use lapin::uri::AMQPUri;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_broker_that_falls_silent_after_the_login_is_not_waited_for() {
        let Some(url) = server_url("FETCHWELL_TEST_RABBITMQ_URL") else { return };
        let uri: AMQPUri = url.parse().unwrap();
        let address = (uri.authority.host.as_str(), uri.authority.port);
        let broker = tokio::net::lookup_host(address).await.unwrap().next().unwrap();
        let proxy = FaultProxy::start(broker).await.unwrap();
        let user = uri.authority.userinfo;
        let link = AmqpConnection::to(&format!(
            "amqp://{}:{}@{}",
            user.username,
            user.password,
            proxy.address()
        ))
        .unwrap();
        let connection = link.connect("test").await.unwrap();
        let names = Names::of("fetchwell_test_silent", false).unwrap();
        proxy.down(Faults::stall());
        let asking = ask(&link, &connection, &names, Duration::from_millis(200));
        let asked = timeout(Duration::from_secs(10), asking).await.expect("there is a limit");
        assert!(asked.unwrap_err().to_string().contains("no answer"));
    }
}

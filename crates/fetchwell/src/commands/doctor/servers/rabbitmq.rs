//! Checks a RabbitMQ queue.

use fetchwell_policy::units::quantity;
use fetchwell_settings::Settings;
use fetchwell_stores::finding::Finding;
use fetchwell_stores::rabbitmq::{self, QueueFacts, RabbitFacts};

use super::unreachable;

pub(super) async fn examine(settings: &Settings) -> Option<Finding> {
    let url = settings.values.commoncrawl_rabbitmq_url.as_ref()?;
    let queue = &settings.values.commoncrawl_queue;
    Some(match rabbitmq::examine(url.reveal(), queue).await {
        Ok(facts) => judge(queue, &facts),
        Err(fault) => unreachable("rabbitmq", &fault),
    })
}

fn judge(queue: &str, facts: &RabbitFacts) -> Finding {
    let batches = |waiting: u64| quantity(waiting, "batch", "batches");
    match facts.queue {
        None => {
            Finding::ok("rabbitmq", format!("answers; the queue {queue} is created on first use"))
        }
        Some(QueueFacts { is_durable: false, waiting }) => Finding::warn(
            "rabbitmq",
            format!("the queue {queue} was declared transient; it has {}", batches(waiting)),
            "its batches are lost when the broker restarts",
            "delete it when it is empty, and start \"commoncrawl\" before any other program",
        ),
        Some(QueueFacts { is_durable: true, waiting }) => {
            let text = format!("the queue {queue} is durable; it has {}", batches(waiting));
            Finding::ok("rabbitmq", text)
        }
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_stores::finding::Verdict;

    use super::*;

    #[test]
    fn a_queue_that_is_lost_with_its_broker_is_told() {
        let queue = |is_durable| RabbitFacts { queue: Some(QueueFacts { is_durable, waiting: 3 }) };
        assert_eq!(judge("q", &queue(true)).verdict, Verdict::Ok);
        assert_eq!(judge("q", &queue(false)).verdict, Verdict::Warn);
        assert_eq!(judge("q", &RabbitFacts { queue: None }).verdict, Verdict::Ok);
    }
}

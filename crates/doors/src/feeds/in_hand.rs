//! A feed in progress: it is finished when its last link is.

use std::collections::HashSet;

use fetchwell_engine::ports::feeds::FeedMemory;
use fetchwell_policy::time::Time;

use super::links::sort;
use super::memory::after;
use super::plan::FeedReading;
use super::subscribed::Subscribed;

pub(super) struct InHand {
    pub(super) feed: Subscribed,
    /// What the store knew about the feed when it was claimed.
    pub(super) before: FeedMemory,
    pub(super) new_links: u64,
    /// `None` until the feed has been read.
    answered: Option<Answered>,
}

struct Answered {
    /// What to store at the end, if anything.
    memory: Option<FeedMemory>,
    /// Links that are still being resolved.
    open: HashSet<String>,
}

impl InHand {
    pub(super) fn new(feed: Subscribed, before: FeedMemory) -> InHand {
        InHand { feed, before, new_links: 0, answered: None }
    }

    /// Records the result of reading the feed and returns the links to resolve; `None` if a result was recorded before.
    pub(super) fn note_reading(&mut self, reading: &FeedReading, now: Time) -> Option<Vec<String>> {
        if self.answered.is_some() {
            return None;
        }
        let Subscribed { categories, interval, .. } = &self.feed;
        let mut memory = after(self.before.clone(), reading, categories, *interval, now);
        let mut asked = Vec::new();
        if let (FeedReading::Read { feed, .. }, Some(memory)) = (reading, &mut memory) {
            let sorted = sort(feed, &self.before.resolved);
            memory.resolved = sorted.resolved;
            asked = sorted.asked;
        }
        self.answered = Some(Answered { memory, open: asked.iter().cloned().collect() });
        Some(asked)
    }

    /// Records where a link leads. Idempotent.
    pub(super) fn note_link(&mut self, link: &str, page: Option<&str>) {
        let Some(Answered { memory, open }) = &mut self.answered else { return };
        open.remove(link);
        if let (Some(memory), Some(page)) = (memory, page) {
            memory.resolved.insert(link.to_owned(), page.to_owned());
        }
    }

    /// Once the feed is finished: what to store, if anything. `None` before that.
    pub(super) fn end(&self) -> Option<Option<&FeedMemory>> {
        let Answered { memory, open } = self.answered.as_ref()?;
        open.is_empty().then_some(memory.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_engine::pipeline::GiveUp;
    use fetchwell_policy::url::WebUrl;
    use fetchwell_testkit::samples::{NOW, lease};

    use super::super::plan::{FeedJob, FeedRecord, Validators, give_up_record, job};
    use super::*;

    #[test]
    fn a_feed_that_was_given_up_has_failed_unless_the_fault_is_ours() {
        let url = "http://a.test/rss";
        let payload = job(url, &FeedJob::Feed(Validators::default()), NOW).job.payload;
        let lease = lease(url, std::str::from_utf8(&payload).unwrap());
        let internal = give_up_record(&lease, GiveUp::Internal, "it panicked");
        let not_reached = FeedReading::NotReached { why: "internal: it panicked".to_owned() };
        let too_large = give_up_record(&lease, GiveUp::TooLarge, "a row of 2 GiB");
        let failed =
            FeedReading::Failed { problem: "a row of 2 GiB".to_owned(), retry_after: None };
        for (found, expected) in [(internal, not_reached), (too_large, failed)] {
            let expected = [FeedRecord::Feed { url: url.to_owned(), reading: expected }];
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }

    #[test]
    fn a_link_that_was_given_up_for_our_fault_is_nobodys_failure_and_is_asked_again() {
        let found_at = WebUrl::parse("http://a.test/rss").unwrap();
        let body = b"<rss><item><link>https://t.co/x</link></item></rss>";
        let feed = fetchwell_feed::read(body, None, &found_at).unwrap();
        let feed_job = FeedJob::Link { feed: found_at.to_string(), home: feed.home.clone() };
        let payload = job("https://t.co/x", &feed_job, NOW).job.payload;
        let lease = lease("https://t.co/x", std::str::from_utf8(&payload).unwrap());
        let found = give_up_record(&lease, GiveUp::Internal, "it panicked");
        let [FeedRecord::Link { feed: of, link, page: None }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((of.as_str(), link.as_str()), ("http://a.test/rss", "https://t.co/x"));

        let subscribed = Subscribed {
            url: found_at.to_string(),
            title: String::new(),
            categories: ["news".to_owned()].into(),
            interval: Duration::from_secs(3_600),
            by: ["store"].into(),
        };
        let mut in_hand = InHand::new(subscribed, FeedMemory::default());
        let validators = Validators::default();
        let moved_to = None;
        let reading = FeedReading::Read { feed: feed.clone(), validators, moved_to };
        assert_eq!(in_hand.note_reading(&reading, NOW).unwrap(), ["https://t.co/x"]);
        assert!(in_hand.end().is_none(), "the link is still open");
        in_hand.note_link(link, None);
        let memory = in_hand.end().unwrap().unwrap();
        assert_eq!((memory.failures, &memory.problem, memory.read_at), (0, &None, Some(NOW)));
        assert_eq!(sort(&feed, &memory.resolved).asked, ["https://t.co/x"]);
    }
}

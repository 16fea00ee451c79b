//! The messages: the same for the program and for the bare loops.

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::MessageId;

/// So many lanes: one caller with so many retailers.
pub(super) const RETAILERS: usize = 4;
/// Whose they are, in the bare loops.
pub(super) const CALLER: &str = "local";

/// What a message says.
pub(super) struct Text {
    pub(super) url: String,
    pub(super) retailer: String,
    pub(super) correlation_id: String,
}

impl Text {
    /// The message of that number; they are spread over so many sites.
    pub(super) fn of(number: usize, sites: usize) -> Text {
        let lane = number % RETAILERS;
        let site = number / RETAILERS % sites;
        Text {
            url: format!("http://site-{site}.test/some/page-title-{number}.html"),
            retailer: format!("retailer-{lane}"),
            correlation_id: format!("5f0c954e-7d29-4c1b-9a3e-{number:012}"),
        }
    }

    /// As it is posted. Nothing in it needs an escape.
    pub(super) fn json(&self) -> String {
        let Text { url, retailer, correlation_id } = self;
        format!(r#"{{"url":"{url}","retailer":"{retailer}","correlation_id":"{correlation_id}"}}"#)
    }
}

/// The body of a batch with the messages of these numbers.
pub(super) fn batch(numbers: std::ops::Range<usize>, sites: usize) -> String {
    let messages: Vec<String> = numbers.map(|number| Text::of(number, sites).json()).collect();
    format!(r#"{{"messages":[{}]}}"#, messages.join(","))
}

/// Names for messages, in their order, as the program makes those of a batch; but by counting instead of chance.
pub(super) struct Names {
    clock: Clock,
    last: u128,
}

impl Names {
    /// `seed`: others give other names.
    pub(super) fn new(seed: usize) -> Names {
        // Chance has 80 bits in a name.
        Names { clock: Clock::system(), last: (seed as u128) << 64 }
    }

    /// The next name, and the time in microseconds.
    pub(super) fn next(&mut self) -> (MessageId, i64) {
        self.last += 1;
        let wall = self.clock.wall();
        (MessageId::new(wall, self.last), wall.as_micros())
    }
}

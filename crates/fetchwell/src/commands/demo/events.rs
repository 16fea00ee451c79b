//! The last log lines, shown on the screen because nothing else may write to it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;

/// The number of lines kept.
const KEPT: usize = 50;

/// The last log lines. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Events(Arc<Mutex<VecDeque<String>>>);

impl Events {
    /// Starts to receive the log.
    pub(super) fn listen(&self) {
        let events = self.clone();
        let filter = EnvFilter::builder().parse_lossy("warn,fetchwell=info,fetchwell_engine=info");
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(move || events.clone())
            .with_ansi(false)
            .with_target(false)
            .with_level(false)
            .without_time();
        // This fails if a test has already started logging; that logger stays in place.
        drop(log.try_init());
    }

    /// The last `most` lines, oldest first.
    pub(super) fn last(&self, most: usize) -> Vec<String> {
        let lines = self.0.lock();
        lines.iter().skip(lines.len().saturating_sub(most)).cloned().collect()
    }
}

impl io::Write for Events {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock();
        for line in String::from_utf8_lossy(bytes).lines().filter(|line| !line.trim().is_empty()) {
            lines.push_back(line.trim().replace(char::is_control, " "));
        }
        while lines.len() > KEPT {
            lines.pop_front();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_no_control_character() {
        let mut events = Events::default();
        for number in 0..200 {
            // As the log does it: a line in one piece.
            events.write_all(format!("line {number}\u{1b}[2J\n").as_bytes()).unwrap();
        }
        assert_eq!(events.last(2), ["line 198 [2J", "line 199 [2J"]);
        assert_eq!(events.last(1_000).len(), KEPT);
    }
}

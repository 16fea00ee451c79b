//! Tracks whether a connection is in use, so that idle ones, and those whose client reads nothing, can be closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the requests and the sent chunks of a connection.
#[derive(Default)]
pub(super) struct Usage {
    begun: AtomicU64,
    ended: AtomicU64,
    begun_at_last_look: AtomicU64,
    /// Chunks of responses that were passed to hyper.
    given: AtomicU64,
    given_at_last_look: AtomicU64,
    /// Responses blocked because the client has not read the last chunk.
    unread: AtomicU64,
}

/// The state of a connection since the last check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// There was no request yet.
    NeverUsed,
    /// No request arrived since the last check, and all were answered.
    Idle,
    /// The client has read nothing since the last check.
    Unread,
    InUse,
}

/// A request in progress.
pub(super) struct UnderWay {
    usage: Arc<Usage>,
    is_unread: bool,
}

impl Usage {
    /// Counts a request as in progress until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Usage>) -> UnderWay {
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay { usage: self.clone(), is_unread: false }
    }

    /// Whether a request is in progress.
    pub(super) fn is_under_way(&self) -> bool {
        self.begun.load(Ordering::Relaxed) != self.ended.load(Ordering::Relaxed)
    }

    /// The state since the last check.
    pub(super) fn look(&self) -> Look {
        let begun = self.begun.load(Ordering::Relaxed);
        let before = self.begun_at_last_look.swap(begun, Ordering::Relaxed);
        let given = self.given.load(Ordering::Relaxed);
        let given_before = self.given_at_last_look.swap(given, Ordering::Relaxed);
        let is_unread = self.unread.load(Ordering::Relaxed) > 0;
        match self.ended.load(Ordering::Relaxed) {
            _ if begun == 0 => Look::NeverUsed,
            ended if begun == before && ended == begun => Look::Idle,
            _ if is_unread && given == given_before => Look::Unread,
            _ => Look::InUse,
        }
    }
}

impl UnderWay {
    /// A chunk of the response was passed to hyper.
    pub(super) fn gave_chunk(&mut self) {
        self.usage.given.fetch_add(1, Ordering::Relaxed);
        self.usage.unread.fetch_add(1, Ordering::Relaxed);
        self.is_unread = true;
    }

    /// hyper asks for more, so the client has taken the last chunk.
    pub(super) fn chunk_taken(&mut self) {
        if std::mem::take(&mut self.is_unread) {
            self.usage.unread.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.chunk_taken();
        self.usage.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_when_nothing_happened_between_two_looks() {
        let usage = Arc::new(Usage::default());
        assert_eq!(usage.look(), Look::NeverUsed);
        let request = usage.begin();
        assert_eq!(usage.look(), Look::InUse);
        assert_eq!((usage.look(), usage.is_under_way()), (Look::InUse, true));
        drop(request);
        assert!(!usage.is_under_way());
        assert_eq!(usage.look(), Look::Idle);
        drop(usage.begin());
        assert_eq!((usage.look(), usage.look()), (Look::InUse, Look::Idle));
    }

    #[test]
    fn a_connection_is_unread_when_an_answer_could_go_on_and_none_does() {
        let usage = Arc::new(Usage::default());
        let mut waiting = usage.begin();
        let mut other = usage.begin();
        assert_eq!((usage.look(), usage.look()), (Look::InUse, Look::InUse), "no answer yet");
        waiting.gave_chunk();
        assert_eq!((usage.look(), usage.look()), (Look::InUse, Look::Unread));
        other.gave_chunk();
        assert_eq!(usage.look(), Look::InUse, "another answer goes on");
        other.chunk_taken();
        waiting.chunk_taken();
        assert_eq!(
            (usage.look(), usage.look()),
            (Look::InUse, Look::InUse),
            "it has no more to say"
        );
        waiting.gave_chunk();
        drop((waiting, other));
        assert_eq!((usage.look(), usage.is_under_way()), (Look::Idle, false));
    }
}

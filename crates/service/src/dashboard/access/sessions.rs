//! Sessions of logged-in users. They are kept in memory, expire, and end with this process.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_engine::ports::inbox::TokenHash;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::auth::{RandomError, random_text};

/// A session ends after this time…
pub(super) const LIFETIME: Duration = Duration::from_secs(12 * 3_600);
/// …or when it was idle for this long.
const IDLE: Duration = Duration::from_secs(2 * 3_600);
/// The maximum number of sessions; a new one replaces the one that was idle longest.
const MOST: usize = 1_024;

/// The hash of a session id, so that nothing in memory can be used to take over the session.
type Key = [u8; 32];

#[derive(Default)]
pub(in super::super) struct Sessions(Mutex<HashMap<Key, Session>>);

#[derive(Clone)]
pub(super) struct Session {
    /// The token that opened the session. When it is revoked, the session ends.
    pub(super) token: TokenHash,
    /// The CSRF token in every form of this session.
    pub(super) csrf: String,
    /// Shown on the next page.
    notice: Option<Notice>,
    began: Instant,
    used: Instant,
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Notice {
    /// Whether the order was carried out.
    pub(in super::super) is_good: bool,
    pub(in super::super) text: String,
}

impl Sessions {
    /// Opens a session for a token and returns its id.
    pub(super) fn open(&self, token: TokenHash) -> Result<String, RandomError> {
        let id = random_text()?;
        let csrf = random_text()?;
        let now = Instant::now();
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| session.is_good());
        if sessions.len() >= MOST {
            let idlest =
                sessions.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
            idlest.and_then(|key| sessions.remove(&key));
        }
        sessions.insert(key(&id), Session { token, csrf, notice: None, began: now, used: now });
        Ok(id)
    }

    /// The session with this id. `counts` if this is an action of the user, which resets the idle time.
    pub(super) fn find(&self, id: &str, counts: bool) -> Option<Session> {
        let mut sessions = self.0.lock();
        let session = sessions.get_mut(&key(id)).filter(|session| session.is_good())?;
        if counts {
            session.used = Instant::now();
        }
        Some(session.clone())
    }

    pub(super) fn close(&self, id: &str) {
        self.0.lock().remove(&key(id));
    }

    /// Stores a notice for the next page.
    pub(super) fn say(&self, id: &str, notice: Notice) {
        let mut sessions = self.0.lock();
        if let Some(session) = sessions.get_mut(&key(id)) {
            session.notice = Some(notice);
        }
    }

    /// Removes and returns the notice, so that it is shown once.
    pub(super) fn take_notice(&self, id: &str) -> Option<Notice> {
        let mut sessions = self.0.lock();
        sessions.get_mut(&key(id))?.notice.take()
    }
}

impl Session {
    fn is_good(&self) -> bool {
        self.began.elapsed() < LIFETIME && self.used.elapsed() < IDLE
    }
}

fn key(id: &str) -> Key {
    Sha256::digest(id.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_idle_or_old() {
        let sessions = Sessions::default();
        let id = sessions.open([1; 32]).unwrap();
        assert_eq!(sessions.find(&id, true).unwrap().token, [1; 32]);
        assert!(sessions.find("another", true).is_none());
        tokio::time::advance(IDLE - Duration::from_secs(1)).await;
        assert!(sessions.find(&id, false).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(
            sessions.find(&id, true).is_none(),
            "a look that does not count keeps nothing alive"
        );
        let id = sessions.open([1; 32]).unwrap();
        for _ in 0..11 {
            tokio::time::advance(Duration::from_secs(3_600)).await;
            assert!(sessions.find(&id, true).is_some());
        }
        tokio::time::advance(Duration::from_secs(3_600)).await;
        assert!(sessions.find(&id, true).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_a_bound_and_the_idlest_makes_room() {
        let sessions = Sessions::default();
        let ids: Vec<String> = (0..MOST).map(|_| sessions.open([1; 32]).unwrap()).collect();
        tokio::time::advance(Duration::from_secs(1)).await;
        for id in &ids[1..] {
            assert!(sessions.find(id, true).is_some());
        }
        let last = sessions.open([1; 32]).unwrap();
        assert!(sessions.find(&ids[0], true).is_none());
        assert!(sessions.find(&last, true).is_some() && sessions.find(&ids[1], true).is_some());
        sessions.close(&last);
        assert!(sessions.find(&last, true).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_notice_is_said_once() {
        let sessions = Sessions::default();
        let id = sessions.open([1; 32]).unwrap();
        let notice = Notice { is_good: true, text: "Done.".to_owned() };
        sessions.say(&id, notice.clone());
        assert_eq!(sessions.take_notice(&id), Some(notice));
        assert_eq!(sessions.take_notice(&id), None);
    }
}

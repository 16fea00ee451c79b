//! Sessions: who logged in, as long as this process lives and not for ever.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_engine::ports::inbox::TokenHash;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::auth::{RandomError, random_text};

/// A session ends after this, whatever is done in it…
pub(super) const LIFETIME: Duration = Duration::from_secs(12 * 3_600);
/// …and before that when nothing is done in it for so long.
const IDLE: Duration = Duration::from_secs(2 * 3_600);
/// Sessions at once; the one that was idle longest makes room.
const MOST: usize = 1_024;

/// What a session is known by here: a hash, so that nothing in memory opens it.
type Key = [u8; 32];

/// All sessions.
#[derive(Default)]
pub(in super::super) struct Sessions(Mutex<HashMap<Key, Session>>);

/// A session.
#[derive(Clone)]
pub(super) struct Session {
    /// Whose token opened it. Revoked, it ends the session.
    pub(super) token: TokenHash,
    /// What every form of this session holds.
    pub(super) csrf: String,
    /// What is to be said on the next page.
    notice: Option<Notice>,
    began: Instant,
    used: Instant,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Notice {
    /// Whether it was done.
    pub(in super::super) is_good: bool,
    /// In words.
    pub(in super::super) text: String,
}

impl Sessions {
    /// Opens a session for the bearer of a token, and says its id.
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

    /// The session of that id. `counts`: somebody does something in it.
    pub(super) fn find(&self, id: &str, counts: bool) -> Option<Session> {
        let mut sessions = self.0.lock();
        let session = sessions.get_mut(&key(id)).filter(|session| session.is_good())?;
        if counts {
            session.used = Instant::now();
        }
        Some(session.clone())
    }

    /// Ends it.
    pub(super) fn close(&self, id: &str) {
        self.0.lock().remove(&key(id));
    }

    /// Keeps what is to be said on the next page.
    pub(super) fn say(&self, id: &str, notice: Notice) {
        let mut sessions = self.0.lock();
        if let Some(session) = sessions.get_mut(&key(id)) {
            session.notice = Some(notice);
        }
    }

    /// What is to be said, once.
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

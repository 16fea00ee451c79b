//! The dashboard: what a person sees who opens a door's address, and what an operator can do there.
//!
//! | file | |
//! |---|---|
//! | `subject` | what a process has to show |
//! | `routes` | which path leads where; what every answer has |
//! | `access` | who comes in, what they may do, and how we know that it was they |
//! | `overview`, `sites`, `messages`, `dead_letters`, `articles`, `common_crawl`, `system` | the pages |
//! | `layout`, `offer`, `tabs`, `fault`, `assets`, `templates/` | what pages have in common |
//! | `live` | pages that look again by themselves |
//! | `history`, `seconds`, `charts` | the last quarter of an hour, and how it is drawn |
//! | `words` | numbers and times for people |
//!
//! A page is made in one way, on the server, and is whole without a script. What a process does not
//! have, its page says, with the command that would make it so.

mod access;
mod articles;
mod assets;
mod charts;
mod common_crawl;
mod dead_letters;
mod fault;
mod history;
mod layout;
mod live;
mod messages;
mod offer;
mod overview;
mod routes;
mod seconds;
mod sites;
mod subject;
mod system;
mod tabs;
mod words;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use access::{Attempts, Sessions};
use dead_letters::Census;

pub use access::Doorkeeper;
pub use history::History;
pub use routes::alone;
pub(crate) use routes::router;
pub use subject::{Door, SettingRow, Subject, SystemInfo};

/// All that its handlers share.
pub struct Dashboard {
    subject: Subject,
    sessions: Sessions,
    attempts: Attempts,
    census: Arc<Census>,
    crawl_looks: common_crawl::Looks,
    /// Places for pages that look again by themselves.
    watched: Arc<Semaphore>,
    /// Ends whatever waits.
    stop: CancellationToken,
}

impl Dashboard {
    /// A dashboard of this.
    pub fn new(subject: Subject, stop: CancellationToken) -> Arc<Dashboard> {
        Arc::new(Dashboard {
            subject,
            sessions: Sessions::default(),
            attempts: Attempts::default(),
            census: Arc::default(),
            crawl_looks: common_crawl::Looks::default(),
            watched: Arc::new(Semaphore::new(live::MOST_WATCHED)),
            stop,
        })
    }

    /// Looks at what is counted, from time to time, until the end.
    pub async fn keep_history(&self) {
        let Subject { history, measures, clock, .. } = &self.subject;
        history.keep(measures, clock, &self.stop).await;
    }

    /// Writes failed logins to the audit until `stop`, and with them those of an API that shares them.
    pub async fn keep_audit(&self, stop: &CancellationToken) {
        let Subject { auth_failures, audit, .. } = &self.subject;
        auth_failures.write_to(audit, stop).await;
    }
}

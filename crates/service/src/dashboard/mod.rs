//! The dashboard: the web pages of a running process, and the actions of operators there.
//!
//! | file | |
//! |---|---|
//! | `subject` | the data of the process that pages show |
//! | `routes` | the routing table, and the headers of every response |
//! | `access` | login, sessions, roles, and protection against forged requests |
//! | `overview`, `sites`, `messages`, `dead_letters`, `articles`, `common_crawl`, `callers`, `system` | the pages |
//! | `layout`, `offer`, `bulk`, `tabs`, `fault`, `assets`, `templates/` | shared parts of pages |
//! | `status` | the status line on every page |
//! | `live` | automatic refresh |
//! | `history`, `seconds`, `charts` | the metrics of the last 15 minutes, and their charts |
//! | `words` | formatting of numbers and times |
//!
//! Pages are rendered on the server and work without scripts. The page of a feature that this process does not have
//! says so and names the command that enables it.

mod access;
mod articles;
mod assets;
mod bulk;
mod callers;
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
mod status;
mod subject;
mod system;
mod tabs;
mod words;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use access::{Attempts, Sessions};
use dead_letters::Census;
use status::StatusCache;

pub use access::Authenticator;
pub use history::MetricsHistory;
pub use routes::alone;
pub(crate) use routes::router;
pub use subject::{DashboardHost, SettingRow, Subject, SystemInfo};

/// The state that the handlers share.
pub struct Dashboard {
    subject: Subject,
    sessions: Sessions,
    attempts: Attempts,
    census: Arc<Census>,
    status: Arc<StatusCache>,
    crawl_looks: common_crawl::Looks,
    /// Limits the number of live pages.
    watched: Arc<Semaphore>,
    /// Ends live pages and background tasks.
    stop: CancellationToken,
}

impl Dashboard {
    pub fn new(subject: Subject, stop: CancellationToken) -> Arc<Dashboard> {
        Arc::new(Dashboard {
            subject,
            sessions: Sessions::default(),
            attempts: Attempts::default(),
            census: Arc::default(),
            status: Arc::default(),
            crawl_looks: common_crawl::Looks::default(),
            watched: Arc::new(Semaphore::new(live::MOST_WATCHED)),
            stop,
        })
    }

    /// Samples the metrics until the process stops.
    pub async fn keep_history(&self) {
        let Subject { history, process_metrics, clock, .. } = &self.subject;
        history.keep(process_metrics, clock, &self.stop).await;
    }

    /// Writes failed authentications, including those of an API that shares them, to the audit log until `stop`.
    pub async fn keep_audit(&self, stop: &CancellationToken) {
        let Subject { auth_failures, audit, .. } = &self.subject;
        auth_failures.write_to(audit, stop).await;
    }
}

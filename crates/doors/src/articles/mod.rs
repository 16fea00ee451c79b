//! `fetchwell articles`: turns links of categories into canonical articles, or failures with a code.
//!
//! `run` is one run: take a snapshot, keep what is new, fetch it, end. Enqueueing a link claims it, and `unattempted`
//! drops links that another run has finished meanwhile. `plan` decides what to do with a link, `record` defines the
//! results, and `finish` stores them.

mod finish;
mod plan;
mod record;
mod run;
mod unattempted;

use std::sync::Arc;

use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::links::CategoryLinks;

pub use plan::{ArticleLink, LinkRules, give_up_record, plan};
pub use record::{ArticleRecord, CanonicalArticle, FailCode, FailedArticle, uid};
pub use run::{ArticleRules, ArticleRun, gate_rules};

/// The ports that a run reads from and writes to.
pub struct ArticlePorts {
    pub links: Arc<dyn CategoryLinks>,
    pub articles: Arc<dyn Articles>,
}

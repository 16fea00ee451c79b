//! `fetchwell articles`: links of categories become canonical articles, or failures with a code.
//!
//! `run` is one run: snapshot, difference, fetch, end. Links are claimed by putting them on a queue, and
//! `unattempted` drops what others did meanwhile. `plan` says what becomes of a link, `record` what comes out,
//! `finish` where that goes.

mod finish;
mod plan;
mod record;
mod run;
mod unattempted;

use std::sync::Arc;

use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::links::CategoryLinks;

pub use plan::{Link, LinkRules, obituary, plan};
pub use record::{ArticleRecord, CanonicalArticle, FailCode, FailedArticle, uid};
pub use run::{ArticleRules, ArticleRun, gate_rules};

/// What a run reads and writes.
pub struct ArticlePorts {
    /// Where links come from.
    pub links: Arc<dyn CategoryLinks>,
    /// Where articles go.
    pub articles: Arc<dyn Articles>,
}

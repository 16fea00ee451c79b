//! Whether a crawl reads sitemaps.

use serde::{Deserialize, Serialize};

/// The depth of the pages that sitemaps list.
pub const SITEMAP_DEPTH: u32 = 1;

/// Whether the sitemaps of a site are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sitemaps {
    /// Yes, and links are followed, too.
    Auto,
    /// Yes, and no link is followed.
    Only,
    /// No.
    Off,
}

impl Sitemaps {
    /// All of them.
    pub const ALL: [Sitemaps; 3] = [Sitemaps::Auto, Sitemaps::Only, Sitemaps::Off];

    /// The name that users write.
    pub fn word(self) -> &'static str {
        match self {
            Sitemaps::Auto => "auto",
            Sitemaps::Only => "only",
            Sitemaps::Off => "off",
        }
    }
}

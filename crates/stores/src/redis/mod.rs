//! The Redis adapter, which many machines can share. Its scripts declare all their keys and use the server's clock.

/// The script in these files, whose paths are relative to the file that names them. It is hashed once.
macro_rules! plain_script {
    ($($file:literal),+) => {{
        static SCRIPT: std::sync::LazyLock<redis::Script> =
            std::sync::LazyLock::new(|| redis::Script::new(concat!($(include_str!($file)),+)));
        &*SCRIPT
    }};
}

/// The script in a file, after the prelude of its folder.
macro_rules! script {
    ($file:literal) => {
        plain_script!("prelude.lua", $file)
    };
}

mod articles;
mod errors;
mod examination;
mod feeds;
mod link;
mod links;
mod pages;
mod queue;
mod site_states;

pub use articles::RedisArticles;
pub use examination::{RedisFacts, examine};
pub use feeds::RedisFeeds;
pub use links::RedisLinks;
pub use pages::RedisPages;
pub use queue::{DEFAULT_POLL, QueueNames, RedisInstance, RedisQueue, UnparkStep, Unparking};
pub use site_states::RedisSiteStates;

//! The scripts: each is one move, and names all the keys of the queue.

use redis::{FromRedisValue, Script};
use serde::Serialize;

use super::names::QueueNames;
use crate::adapters::StoreClock;
use crate::adapters::redis::link::Link;
use crate::ports::StoreFault;

/// The scripts of one queue, and the server that runs them.
pub(super) struct Scripts {
    link: Link,
    keys: Vec<String>,
    pub(super) clock: StoreClock,
    pub(super) move_heads: Script,
    pub(super) unfiled: Script,
    pub(super) file: Script,
    pub(super) take: Script,
    pub(super) started: Script,
    pub(super) settle: Script,
    pub(super) renew: Script,
    pub(super) give_back: Script,
    pub(super) enqueue: Script,
    pub(super) unpark: Script,
    pub(super) count: Script,
    pub(super) letters: Script,
    pub(super) revise: Script,
}

/// Asked of scripts that need to know nothing.
#[derive(Serialize)]
pub(super) struct Nothing {}

macro_rules! script {
    ($file:literal) => {
        Script::new(concat!(include_str!("prelude.lua"), include_str!($file)))
    };
}

impl Scripts {
    pub(super) fn new(link: Link, names: &QueueNames, clock: StoreClock) -> Scripts {
        Scripts {
            link,
            keys: names.keys(),
            clock,
            move_heads: script!("move.lua"),
            unfiled: script!("unfiled.lua"),
            file: script!("file.lua"),
            take: script!("take.lua"),
            started: script!("started.lua"),
            settle: script!("settle.lua"),
            renew: script!("renew.lua"),
            give_back: script!("give_back.lua"),
            enqueue: script!("enqueue.lua"),
            unpark: script!("unpark.lua"),
            count: script!("count.lua"),
            letters: script!("letters.lua"),
            revise: script!("revise.lua"),
        }
    }

    /// Runs a script.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        asked: &impl Serialize,
    ) -> Result<T, StoreFault> {
        self.run_with(script, asked, &[]).await
    }

    /// Runs a script that is also given what may be any bytes.
    pub(super) async fn run_with<T: FromRedisValue>(
        &self,
        script: &Script,
        asked: &impl Serialize,
        bytes: &[&[u8]],
    ) -> Result<T, StoreFault> {
        let asked = serde_json::to_string(asked)
            .map_err(|error| StoreFault::Damaged(format!("a question can't be put: {error}")))?;
        let now = self.clock.given().map_or_else(String::new, |micros| micros.to_string());
        let mut call = script.prepare_invoke();
        for key in &self.keys {
            call.key(key);
        }
        call.arg(now).arg(asked);
        for bytes in bytes {
            call.arg(*bytes);
        }
        let mut connection = self.link.standing().await?.connection;
        match call.invoke_async(&mut connection).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.link.fault(error).await),
        }
    }
}

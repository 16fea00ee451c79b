//! A connection to Redis that knows which run of the server it is connected to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::version::refuse_newer_store;
use fetchwell_policy::time::Time;
use futures::TryStreamExt;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, RedisError, RedisResult,
    ScriptInvocation,
};
use tokio::sync::Mutex;
use tracing::warn;

use super::errors::store_error;

/// A server that does not answer within this time counts as unreachable.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The version of the key layout. A change that earlier programs would misread raises the number and writes it under
/// this key; until then the key does not exist.
const VERSION: i64 = 1;
const VERSION_KEY: &str = "fetchwell:store:version";

/// The warnings that this process has logged: each once, however many connections there are.
static WARNED: parking_lot::Mutex<BTreeSet<String>> = parking_lot::Mutex::new(BTreeSet::new());

/// Connects on demand, and again after an error.
pub(super) struct RedisConnection {
    client: Client,
    answer_within: Duration,
    standing: Mutex<Option<Standing>>,
}

/// A connection, and the run of the server that it belongs to: a restart ends all connections.
#[derive(Clone)]
pub(super) struct Standing {
    pub(super) connection: MultiplexedConnection,
    pub(super) run_id: Arc<str>,
    /// Why the server may lose data; empty if it does not.
    cautions: Arc<[String]>,
}

impl RedisConnection {
    /// Connects to the server and checks that it is suitable.
    pub(super) async fn open(url: &str) -> Result<RedisConnection, StoreError> {
        RedisConnection::open_patiently(url, ANSWER_WITHIN).await
    }

    /// `open` with a given response timeout, for larger transfers.
    pub(super) async fn open_patiently(
        url: &str,
        answer_within: Duration,
    ) -> Result<RedisConnection, StoreError> {
        let client = Client::open(url).map_err(|error| {
            StoreError::incompatible("the address of Redis is invalid")
                .with_source(error)
                .with_advice("write redis://[user:password@]host:port/db")
        })?;
        let link = RedisConnection { client, answer_within, standing: Mutex::default() };
        link.refuse_newer().await?;
        Ok(link)
    }

    /// The open connection, or a new one.
    pub(super) async fn standing(&self) -> Result<Standing, StoreError> {
        let mut standing = self.standing.lock().await;
        if let Some(standing) = standing.as_ref() {
            return Ok(standing.clone());
        }
        let fresh = self.connect().await?;
        Ok(standing.insert(fresh).clone())
    }

    /// Refuses a server whose keys a newer program has changed.
    async fn refuse_newer(&self) -> Result<(), StoreError> {
        let mut connection = self.standing().await?.connection;
        let get = redis::cmd("GET").arg(VERSION_KEY).query_async(&mut connection).await;
        let kept: Option<String> = match get {
            Ok(kept) => kept,
            // A user with access to a cache only, where there is no queue.
            Err(error) if error.code() == Some("NOPERM") => None,
            Err(error) => return Err(self.fault(error).await),
        };
        let version = kept.and_then(|text| text.parse().ok()).unwrap_or(VERSION);
        refuse_newer_store(&format!("Redis at {}", self.address()), version, VERSION)
    }

    /// Warns if the server may lose data that is written to it. Not needed for reading.
    pub(super) async fn warn_of_forgetting(&self) -> Result<(), StoreError> {
        for caution in self.standing().await?.cautions.iter().filter(|caution| is_news(caution)) {
            warn!("{caution}");
        }
        Ok(())
    }

    /// Sends a command.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let mut connection = self.standing().await?.connection;
        self.checked(command.query_async(&mut connection).await).await
    }

    /// Sends several commands at once.
    pub(super) async fn query_all<T: FromRedisValue>(
        &self,
        commands: &Pipeline,
    ) -> Result<T, StoreError> {
        let mut connection = self.standing().await?.connection;
        self.checked(commands.query_async(&mut connection).await).await
    }

    /// Runs a script.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        call: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let mut connection = self.standing().await?.connection;
        self.checked(call.invoke_async(&mut connection).await).await
    }

    /// All results of a scan. A server may return some of them twice.
    pub(super) async fn scan<T: FromRedisValue + Unpin + Send>(
        &self,
        scan: Cmd,
    ) -> Result<Vec<T>, StoreError> {
        let mut connection = self.standing().await?.connection;
        let all =
            async { scan.iter_async::<T>(&mut connection).await?.try_collect::<Vec<T>>().await };
        self.checked(all.await).await
    }

    /// The time on the server's clock.
    pub(super) async fn server_time(&self) -> Result<Time, StoreError> {
        let (secs, micros): (i64, i64) = self.query(&redis::cmd("TIME")).await?;
        Ok(Time::from_micros(secs.saturating_mul(1_000_000).saturating_add(micros)))
    }

    /// Converts the error of an answer, and drops the connection if it may be unusable.
    pub(super) async fn checked<T>(&self, answer: RedisResult<T>) -> Result<T, StoreError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.fault(error).await),
        }
    }

    async fn fault(&self, error: RedisError) -> StoreError {
        // After a failover, a new connection leads to the new primary; this one stays with the demoted server.
        let is_demoted = matches!(error.code(), Some("READONLY" | "MASTERDOWN"));
        if is_demoted || error.is_io_error() || error.is_timeout() || error.is_unrecoverable_error()
        {
            self.standing.lock().await.take();
        }
        self.explain(error)
    }

    async fn connect(&self) -> Result<Standing, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER_WITHIN))
            .set_response_timeout(Some(self.answer_within));
        let connected = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connected.map_err(|error| self.explain(error))?;
        let info: String = redis::cmd("INFO")
            .query_async(&mut connection)
            .await
            .map_err(|error| self.explain(error))?;
        let run_id = self.examine(&info)?;
        Ok(Standing { connection, run_id, cautions: self.cautions(&info).into() })
    }

    /// The run id of the server. Refuses a server that is not suitable.
    fn examine(&self, info: &str) -> Result<Arc<str>, StoreError> {
        if field(info, "cluster_enabled") == Some("1") {
            return Err(StoreError::incompatible(format!(
                "{} is a Redis Cluster, whose scripts cannot use several keys at once; use a \
                 single Redis server",
                self.address()
            )));
        }
        let run_id = field(info, "run_id").filter(|run_id| !run_id.is_empty());
        run_id.map(Arc::from).ok_or_else(|| {
            let context =
                format!("{} is not a Redis server: its INFO has no run_id", self.address());
            StoreError::incompatible(context).with_advice("use the address of a Redis server")
        })
    }

    /// Why the server may lose data.
    fn cautions(&self, info: &str) -> Vec<String> {
        let value = |name: &str| field(info, name).unwrap_or_default();
        let address = self.address();
        let policy = value("maxmemory_policy");
        let mut cautions = Vec::new();
        if value("maxmemory") != "0" && policy != "noeviction" {
            cautions.push(format!(
                "Redis at {address} evicts keys when its memory is full (maxmemory-policy \
                 {policy}): URLs can be lost, and sites can get requests too early; set \
                 maxmemory-policy noeviction"
            ));
        }
        if value("aof_enabled") == "0" {
            cautions.push(format!(
                "Redis at {address} does not log its changes (appendonly no): URLs, penalties and open \
                 circuits may be forgotten when it restarts; set appendonly yes and appendfsync always"
            ));
        }
        cautions
    }

    fn explain(&self, error: RedisError) -> StoreError {
        store_error(format!("Redis at {}", self.address()), error)
    }

    /// The address of the server, without the password.
    fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }
}

/// Whether this process has not logged it yet.
fn is_news(caution: &str) -> bool {
    WARNED.lock().insert(caution.to_owned())
}

/// A scan of the keys of all sets that begin with `prefix`.
pub(super) fn sets_with_prefix(prefix: &str, per_step: usize) -> Cmd {
    let mut keys = redis::cmd("SCAN");
    keys.cursor_arg(0).arg("MATCH").arg(format!("{prefix}*"));
    keys.arg("COUNT").arg(per_step).arg("TYPE").arg("set");
    keys
}

/// A scan of the members of a set.
pub(super) fn members_of(key: &str, per_step: usize) -> Cmd {
    let mut members = redis::cmd("SSCAN");
    members.arg(key).cursor_arg(0).arg("COUNT").arg(per_step);
    members
}

/// The value of a line `name:value` of INFO.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> RedisConnection {
        let client = Client::open("redis://:secret@127.0.0.1:1/").unwrap();
        RedisConnection { client, answer_within: ANSWER_WITHIN, standing: Mutex::default() }
    }

    #[tokio::test]
    async fn what_a_server_says_of_itself_decides_whether_it_will_do() {
        let link = link();
        let good = "# Server\r\nrun_id:abc\r\nmaxmemory:0\r\ncluster_enabled:0\r\n";
        assert_eq!(&*link.examine(good).unwrap(), "abc");
        let refusal = link.examine("cluster_enabled:1\r\n").unwrap_err().to_string();
        assert!(refusal.contains("Redis Cluster") && !refusal.contains("secret"), "{refusal}");
        assert!(link.examine("").is_err());
    }

    #[test]
    fn a_server_that_forgets_is_warned_of_once() {
        let sound = "maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n";
        assert_eq!(link().cautions(sound), Vec::<String>::new());
        let forgetful = "maxmemory:9\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n";
        let cautions = link().cautions(forgetful);
        assert_eq!(cautions.len(), 2, "{cautions:?}");
        for caution in &cautions {
            assert!(caution.contains("127.0.0.1:1") && !caution.contains("secret"), "{caution}");
            assert!(is_news(caution), "{caution}");
            assert!(!is_news(caution), "whoever connects again says it again: {caution}");
        }
    }
}

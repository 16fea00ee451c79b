//! Maps Redis errors to store errors, with advice.

use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError, ServerErrorKind};

use StoreErrorKind::{Bug, Corrupt, Incompatible, TooLarge, Transient};

/// The kind of an error reply, by its first word.
///
/// A key of another type is incompatible, because another program uses a key of that name. So are a wrong password and
/// missing permissions, because a retry does not help. Everything that is not listed is transient: it comes from a
/// proxy or a module, whose errors this program does not know.
fn kind_of_code(code: &str) -> Option<StoreErrorKind> {
    match code {
        "ASK" | "CROSSSLOT" | "DENIED" | "MOVED" | "NOAUTH" | "NOPERM" | "NOPROTO"
        | "WRONGPASS" | "WRONGTYPE" => Some(Incompatible),
        "BUSY" | "CLUSTERDOWN" | "EXECABORT" | "INPROG" | "LOADING" | "MASTERDOWN" | "MISCONF"
        | "NOREPLICAS" | "NOSCRIPT" | "NOTBUSY" | "OOM" | "READONLY" | "TRYAGAIN" | "UNBLOCKED" => {
            Some(Transient)
        }
        _ => None,
    }
}

/// The first word of errors that have no code of their own, and what their texts mean. As above, others are transient.
const GENERAL: &str = "ERR";
const TEXTS: &[(&str, StoreErrorKind)] = &[
    ("max number of clients", Transient),
    ("limit exceeded", Transient),
    ("shutting down", Transient),
    ("Script killed", Transient),
    ("unknown command", Incompatible),
    ("DB index is out of range", Incompatible),
    ("invalid DB index", Incompatible),
    ("invalid password", Incompatible),
    // Raised by a script of the queue.
    ("has lost job", Corrupt),
    ("is not an integer", Corrupt),
    ("is not a valid float", Corrupt),
    ("exceeds maximum allowed size", TooLarge),
    ("invalid bulk length", TooLarge),
    ("syntax error", Bug),
    ("wrong number of arguments", Bug),
    ("Error compiling script", Bug),
    ("user_script", Bug),
];

/// Converts an error of the Redis driver; `server` names the server. All such errors are converted here.
pub(super) fn store_error(server: String, error: RedisError) -> StoreError {
    let kind = kind_of(&error);
    let advice = match reply_of(&error).as_ref().map(|(code, _)| code.as_str()) {
        Some("OOM") => "raise maxmemory of the server, or delete keys that are not needed",
        Some("MISCONF") => "the server cannot write to its disk: see its log",
        Some("NOAUTH" | "WRONGPASS") => "check user and password in its address",
        Some("NOPERM") => "grant this user access to the commands and keys that Fetchwell uses",
        Some("WRONGTYPE") => {
            "another program uses a key of that name: use another queue name or another database"
        }
        _ if error.kind() == ErrorKind::AuthenticationFailed => {
            "check user and password in its address"
        }
        _ => "",
    };
    StoreError::new(kind, server).with_source(error).with_advice(advice)
}

/// The first word of an error reply, and the rest. If there are several replies, the first one counts.
fn reply_of(error: &RedisError) -> Option<(String, String)> {
    let replies = error.clone().into_server_errors()?;
    let (_, first) = replies.first()?;
    Some((first.code().to_owned(), first.details().unwrap_or_default().to_owned()))
}

fn kind_of(error: &RedisError) -> StoreErrorKind {
    if let Some((code, text)) = reply_of(error) {
        return kind_of_reply(&code, &text);
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::EmptySentinelList
        | ErrorKind::RESP3NotSupported => Incompatible,
        // A reply that this program's keys and scripts cannot produce.
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Corrupt,
        // The driver wraps the server's reply to SELECT while connecting.
        ErrorKind::Server(ServerErrorKind::ResponseError) => {
            kind_of_reply(GENERAL, error.detail().unwrap_or_default())
        }
        ErrorKind::Server(_) => error.code().and_then(kind_of_code).unwrap_or(Bug),
        // The connection, its TLS, or a proxy in between.
        _ => Transient,
    }
}

fn kind_of_reply(code: &str, text: &str) -> StoreErrorKind {
    if code != GENERAL {
        return kind_of_code(code).unwrap_or(Transient);
    }
    // Servers before Redis 7 wrap errors inside scripts.
    let mut wrapped = text.split_whitespace().filter_map(|word| word.strip_prefix('-'));
    let by_text = || TEXTS.iter().find(|(words, _)| text.contains(words)).map(|(_, kind)| *kind);
    wrapped.find_map(kind_of_code).or_else(by_text).unwrap_or(Transient)
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::make_extension_error;

    use super::*;

    fn kind_of_line(line: &str) -> StoreErrorKind {
        let (code, text) = line.split_once(' ').unwrap_or((line, ""));
        let error = make_extension_error(code.to_owned(), Some(text.to_owned()));
        store_error("Redis at r:6379".to_owned(), error).kind()
    }

    #[test]
    fn each_reply_has_its_kind() {
        for (line, kind) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", Transient),
            ("MISCONF Redis is configured to save RDB snapshots", Transient),
            ("LOADING Redis is loading the dataset in memory", Transient),
            ("BUSY Redis is busy running a script", Transient),
            ("READONLY You can't write against a read only replica.", Transient),
            ("CLUSTERDOWN The cluster is down", Transient),
            ("MASTERDOWN Link with MASTER is down", Transient),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Transient),
            ("NOREPLICAS Not enough good replicas to write.", Transient),
            ("NOSCRIPT No matching script.", Transient),
            ("upstream failure", Transient),
            ("ERR max number of clients reached", Transient),
            (
                "ERR Error running script (call to f_1): @user_script:9: -OOM command not allowed",
                Transient,
            ),
            ("ERR Error running script: Script killed by user with SCRIPT KILL.", Transient),
            ("ERR the proxy has no backend", Transient),
            ("NOAUTH Authentication required.", Incompatible),
            ("WRONGPASS invalid username-password pair", Incompatible),
            ("NOPERM this user has no permissions to run the 'eval' command", Incompatible),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Incompatible),
            ("MOVED 3999 127.0.0.1:6381", Incompatible),
            ("ERR unknown command 'ZRANGESTORE'", Incompatible),
            ("ERR DB index is out of range", Incompatible),
            ("ERR user_script:64: q:jobs has lost job 2; was it evicted?", Corrupt),
            ("ERR hash value is not an integer", Corrupt),
            ("ERR string exceeds maximum allowed size (512MB)", TooLarge),
            ("ERR Protocol error: invalid bulk length", TooLarge),
            ("ERR syntax error", Bug),
            ("ERR wrong number of arguments for 'get' command", Bug),
        ] {
            assert_eq!(kind_of_line(line), kind, "{line}");
        }
    }

    /// As the driver reports it while it connects.
    fn refused_select(text: &str) -> RedisError {
        let kind = ErrorKind::Server(ServerErrorKind::ResponseError);
        RedisError::from((kind, "the server refused to switch database", text.to_owned()))
    }

    #[test]
    fn what_the_driver_says_has_its_kind() {
        for (error, kind) in [
            (RedisError::from(io::Error::from(io::ErrorKind::ConnectionRefused)), Transient),
            (RedisError::from((ErrorKind::Client, "no TLS")), Transient),
            (RedisError::from((ErrorKind::AuthenticationFailed, "no")), Incompatible),
            (RedisError::from((ErrorKind::InvalidClientConfig, "no")), Incompatible),
            (RedisError::from((ErrorKind::UnexpectedReturnType, "a list")), Corrupt),
            (RedisError::from((ErrorKind::Server(ServerErrorKind::BusyLoading), "")), Transient),
            (RedisError::from((ErrorKind::Server(ServerErrorKind::NoPerm), "")), Incompatible),
            (refused_select("DB index is out of range"), Incompatible),
            (refused_select("the proxy has no backend"), Transient),
        ] {
            assert_eq!(kind_of(&error), kind, "{error}");
        }
    }
}

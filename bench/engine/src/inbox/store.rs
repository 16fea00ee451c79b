//! Stores that nobody used before.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use tempfile::TempDir;

/// What kind of store, and where.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Files in new folders.
    Sqlite,
    /// New databases on the server that this address names.
    Postgres(String),
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Kind> {
        match text {
            "sqlite" => Ok(Kind::Sqlite),
            url if url.starts_with("postgres://") => Ok(Kind::Postgres(url.to_owned())),
            other => bail!("`{other}` is neither sqlite nor postgres://…"),
        }
    }
}

impl Kind {
    /// Its name in the tables.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Sqlite => "SQLite",
            Kind::Postgres(_) => "PostgreSQL",
        }
    }
}

/// A fresh store. Call [`Store::remove`] at the end, or its database stays.
pub struct Store {
    kind: Kind,
    folder: TempDir,
    database: String,
}

impl Store {
    /// Makes one; whatever is a file is in a new folder inside `folder`.
    pub async fn fresh(kind: &Kind, folder: &Path) -> Result<Store> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let database = format!("fetchwell_bench_{}_{number}", std::process::id());
        let folder = TempDir::with_prefix_in("fetchwell-bench-", folder)?;
        let store = Store { kind: kind.clone(), folder, database };
        store.on_server("CREATE DATABASE").await?;
        Ok(store)
    }

    /// Takes it away.
    pub async fn remove(self) -> Result<()> {
        self.on_server("DROP DATABASE").await
    }

    /// A folder that goes with the store.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file, if it is one.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// As the program is told.
    pub fn address(&self) -> Result<String> {
        match &self.kind {
            Kind::Sqlite => Ok(format!("sqlite:{}", self.file().display())),
            Kind::Postgres(_) => self.postgres_url(),
        }
    }

    /// The database's own address.
    pub fn postgres_url(&self) -> Result<String> {
        let Kind::Postgres(url) = &self.kind else { bail!("this is no PostgreSQL") };
        let (server, _) = url.rsplit_once('/').context("write postgres://user@host:port/db")?;
        Ok(format!("{server}/{}", self.database))
    }

    async fn on_server(&self, verb: &str) -> Result<()> {
        let Kind::Postgres(url) = &self.kind else { return Ok(()) };
        let mut server = PgConnectOptions::from_str(url)?.connect().await?;
        let force = if verb.starts_with("DROP") { " WITH (FORCE)" } else { "" };
        server.execute(AssertSqlSafe(format!("{verb} {}{force}", self.database))).await?;
        Ok(())
    }
}

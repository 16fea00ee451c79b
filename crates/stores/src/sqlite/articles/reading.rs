//! Reads articles from SQLite.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fetchwell_engine::ports::articles::{ARTICLES_EXAMINED, Counts, Fields, Status, Wanted};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};
use serde::Deserialize;

pub(super) fn find(tx: &Connection, uid: &str, now: Time) -> rusqlite::Result<Option<Fields>> {
    let select = "SELECT fields FROM article WHERE uid = ?1 AND expires_at > ?2";
    tx.find(select, (uid, now.as_micros()), fields_of)
}

pub(super) fn list(tx: &Connection, wanted: &Wanted, now: Time) -> rusqlite::Result<Vec<Fields>> {
    let is_failure = wanted.status.map(|status| status == Status::Failure);
    let examined = if wanted.text.is_some() { ARTICLES_EXAMINED } else { wanted.most };
    let mut statement = tx.prepare_cached(
        "SELECT fields FROM article WHERE expires_at > ?1 AND (?2 IS NULL OR is_failure = ?2)
             AND (?3 IS NULL OR category = ?3 OR EXISTS (
                 SELECT 1 FROM article_category
                 WHERE article_category.category = ?3 AND article_category.uid = article.uid))
         ORDER BY fetched_ts DESC, uid LIMIT ?4",
    )?;
    let mut rows = statement.query((now.as_micros(), is_failure, &wanted.category, examined))?;
    let mut found = Vec::new();
    while found.len() < wanted.most
        && let Some(row) = rows.next()?
    {
        if wanted.text.is_none() || has_text(row, wanted)? {
            found.push(fields_of(row)?);
        }
    }
    Ok(found)
}

/// Reads only the title and the URL of an article, which may be large.
fn has_text(row: &Row<'_>, wanted: &Wanted) -> rusqlite::Result<bool> {
    #[derive(Deserialize)]
    struct Searched<'a> {
        #[serde(borrow, default)]
        title: Cow<'a, str>,
        #[serde(borrow, default)]
        url: Cow<'a, str>,
    }
    let searched: Searched<'_> =
        serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(unreadable)?;
    Ok(wanted.wants_text(&searched.title, &searched.url))
}

pub(super) fn count(tx: &Connection) -> rusqlite::Result<Counts> {
    let one = |statement: &str| tx.one(statement, [], |row| row.get(0));
    let groups = |statement: &str| -> rusqlite::Result<BTreeMap<String, u64>> {
        let groups: Vec<(String, u64)> = tx.list(statement, [], |row| row.try_into())?;
        Ok(groups.into_iter().collect())
    };
    Ok(Counts {
        articles: one("SELECT count(*) FROM article WHERE NOT is_failure")?,
        attempted: one("SELECT count(*) FROM attempted")?,
        by_category: groups("SELECT category, count(*) FROM article_category GROUP BY category")?,
        failures: groups("SELECT code, count(*) FROM article_failure GROUP BY code")?,
    })
}

pub(super) fn json(fields: &Fields) -> rusqlite::Result<String> {
    serde_json::to_string(fields)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn fields_of(row: &Row<'_>) -> rusqlite::Result<Fields> {
    let text: String = row.get(0)?;
    serde_json::from_str(&text).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}

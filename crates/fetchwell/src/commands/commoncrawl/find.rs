//! `fetchwell commoncrawl find`: finds the captures of a page, of everything below it, or of a domain.

use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_commoncrawl::lookup::Keys;
use fetchwell_settings::Settings;
use serde_json::{Map, Value as Json};
use tracing::{info, warn};

use super::archive::{OpenArchive, exit_of};
use super::args::FindArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::console::terminal::printable;

pub(super) fn run(settings: &Settings, args: FindArgs, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        let crawl = settings.values.commoncrawl_crawl.as_str();
        let keys = Keys::of(&args.pattern)?;
        let archive = OpenArchive::open_to_look(settings).await?;
        let found = match archive.reader(settings).find(keys, args.limit).await {
            Ok(found) => found,
            Err(error) => return Ok(exit_of(settings, error)),
        };
        if found.captures.is_empty() && found.unread == 0 {
            warn!("{crawl} has no capture of {}", args.pattern);
            return Ok(Exit::SomeFailed);
        }
        let text = if as_json { json_lines(&found.captures) } else { table(&found.captures) };
        let exit = print(text)?;
        if found.has_more {
            info!("there are more; use --limit N to print more than {}", args.limit);
        }
        Ok(if found.unread > 0 { Exit::SomeFailed } else { exit })
    })
}

/// The format of Common Crawl's index server: the key, the time, and all fields of the line.
fn json_lines(captures: &[CdxRecord]) -> String {
    captures.iter().map(|capture| format!("{}\n", json(capture))).collect()
}

/// A capture as an object.
pub(crate) fn json(capture: &CdxRecord) -> Json {
    let mut object = Map::new();
    object.insert("urlkey".to_owned(), capture.surt_url.clone().into());
    object.insert("timestamp".to_owned(), capture.timestamp.clone().into());
    let fields = capture.metadata.iter();
    object.extend(fields.map(|(name, value)| (name.clone(), value.clone().into())));
    Json::Object(object)
}

fn table(captures: &[CdxRecord]) -> String {
    let field = |capture: &CdxRecord, name: &str| {
        capture.metadata.get(name).map_or("-".to_owned(), |value| printable(value).into_owned())
    };
    let line = |capture: &CdxRecord| {
        let [status, mime, length, url] =
            ["status", "mime", "length", "url"].map(|name| field(capture, name));
        format!("{}  {status:<6}  {mime:<24}  {length:>9}  {url}\n", printable(&capture.timestamp))
    };
    let head = format!("{:<14}  {:<6}  {:<24}  {:>9}  URL\n", "TIME", "STATUS", "TYPE", "BYTES");
    std::iter::once(head).chain(captures.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_an_archive_cannot_move_the_cursor() {
        let metadata = [("url".to_owned(), "http://a.test/\u{1b}[2J".to_owned())].into();
        let surt_url = "test,a)/".to_owned();
        let timestamp = "20261118000000".to_owned();
        let text = table(&[CdxRecord { surt_url, timestamp, metadata }]);
        assert!(!text.contains('\u{1b}') && text.contains("http://a.test/"), "{text}");
    }
}

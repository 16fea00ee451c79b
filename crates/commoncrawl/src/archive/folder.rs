//! An archive in a folder, as a `Web`: it answers range requests from files and never reads outside of the folder.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::budget::Share;
use fetchwell_engine::http::is_lack_of_our_own;
use fetchwell_engine::web::{Answer, Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::url::WebUrl;
use http::{HeaderMap, HeaderValue};
use tokio::task::spawn_blocking;

use super::byte_range::ByteRange;

/// Stands for the folder where a URL is needed. No request is ever sent to this host; it appears only in debug logs,
/// and no store keeps it as a site.
const ROOT: &str = "http://archive-folder/";

pub(super) fn root() -> Result<WebUrl, fetchwell_policy::url::UrlFault> {
    WebUrl::parse(ROOT)
}

/// Serves a folder. Symbolic links in it are followed, wherever they lead.
pub(super) struct FolderWeb {
    pub(super) folder: PathBuf,
}

#[async_trait]
impl Web for FolderWeb {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn SendPermit,
        _: &mut Phases,
    ) -> Exchange {
        let range = request.headers.iter().find(|(name, _)| *name == "range");
        let range = range.and_then(|(_, value)| ByteRange::of_header(value));
        let path = below(&self.folder, request.url.path_and_query());
        if !leave.to_write().await {
            return Exchange::NotSent;
        }
        let (Some(path), Some(range)) = (path, range) else { return answered(404, None) };
        let name = path.display().to_string();
        match spawn_blocking(move || read(&path, range)).await {
            Ok(Ok(part)) => part,
            Ok(Err(error)) => failed(&name, &error),
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(stopped) => Exchange::Failed(FetchOutcome::OurFault(stopped.to_string())),
            },
        }
    }
}

/// The file that a URL path names; `None` if it might be outside of the folder.
fn below(folder: &Path, path: &str) -> Option<PathBuf> {
    // File names of an archive need no escapes and have no query.
    let is_name = |name: &str| {
        !matches!(name, "" | "." | "..") && !name.contains(['%', '?', '\\', '\0', ':'])
    };
    let mut file = folder.to_owned();
    for name in path.strip_prefix('/')?.split('/') {
        file.push(Some(name).filter(|name| is_name(name))?);
    }
    Some(file)
}

fn read(path: &Path, range: ByteRange) -> io::Result<Exchange> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(answered(404, None));
    }
    let file_bytes = metadata.len();
    if range.offset >= file_bytes {
        return Ok(answered(416, None));
    }
    let length = range.length.min(file_bytes - range.offset);
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, range.offset)?;
    let is_there = ByteRange { length, ..range };
    Ok(answered(206, Some((is_there.content_range(file_bytes), bytes))))
}

fn answered(status: u16, part: Option<(String, Vec<u8>)>) -> Exchange {
    let mut headers = HeaderMap::new();
    let mut body = Bytes::new();
    if let Some((content_range, bytes)) = part {
        body = bytes.into();
        if let Ok(value) = HeaderValue::from_str(&content_range) {
            headers.insert("content-range", value);
        }
    }
    Exchange::Answered(Answer { status, headers, body, share: Share::none(), wire: Box::default() })
}

/// Other I/O errors count as a refusal, which stops the run: the next file would fail, too.
fn failed(name: &str, error: &io::Error) -> Exchange {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => answered(404, None),
        ErrorKind::PermissionDenied => answered(403, None),
        _ if is_lack_of_our_own(error) => {
            Exchange::Failed(FetchOutcome::OurFault(format!("cannot open {name}: {error}")))
        }
        _ => Exchange::Failed(FetchOutcome::Refused(format!("cannot read {name}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Granted;

    #[async_trait]
    impl SendPermit for Granted {
        async fn to_write(&mut self) -> bool {
            true
        }
    }

    async fn asked(folder: &Path, path: &str, offset: u64, length: u64) -> (u16, String, Bytes) {
        let web = FolderWeb { folder: folder.to_owned() };
        let url = root().unwrap().join(path).unwrap();
        let request = ByteRange { offset, length }.request(url);
        match web.exchange(&request, &mut Granted, &mut Phases::default()).await {
            Exchange::Answered(answer) => {
                let stated = answer.header("content-range").unwrap_or_default().to_owned();
                (answer.status, stated, answer.body)
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn ranges_of_files_are_answered_and_all_else_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b.gz"), "0123456789").unwrap();
        std::fs::write(folder.path().join("a/empty"), "").unwrap();
        let asked = |path, offset, length| asked(folder.path(), path, offset, length);
        assert_eq!(asked("a/b.gz", 2, 3).await, (206, "bytes 2-4/10".into(), "234".into()));
        assert_eq!(asked("a/b.gz", 8, 9).await, (206, "bytes 8-9/10".into(), "89".into()));
        for (path, offset, status) in
            [("a/b.gz", 10, 416), ("a/empty", 0, 416), ("a/c.gz", 0, 404), ("a", 0, 404)]
        {
            assert_eq!(asked(path, offset, 1).await.0, status, "{path}");
        }
        assert_eq!(asked("a/b.gz/c", 0, 1).await.0, 404);
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let folder = Path::new("/data");
        assert_eq!(below(folder, "/a/b.gz"), Some(PathBuf::from("/data/a/b.gz")));
        for path in ["", "/", "/a/", "//a", "/../a", "/a/../../b", "/%2e%2e/a", "/a?b", "/a\\b"] {
            assert_eq!(below(folder, path), None, "{path}");
        }
    }
}

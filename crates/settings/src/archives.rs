//! Settings that name a web archive.

use std::fmt;
use std::path::PathBuf;

use fetchwell_policy::url::WebUrl;

use super::fault::{Wrong, quoted};
use super::kinds::{Parsed, displayed};

/// The location of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveBase {
    /// `https://…`: a web server; the URL ends in a slash.
    Web(WebUrl),
    /// The path of a folder.
    Folder(PathBuf),
    /// `s3://BUCKET/PREFIX`: a bucket; the prefix is empty or ends in a slash.
    S3 { bucket: String, prefix: String },
}

impl fmt::Display for ArchiveBase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveBase::Web(url) => write!(out, "{url}"),
            ArchiveBase::Folder(path) => write!(out, "{}", path.display()),
            ArchiveBase::S3 { bucket, prefix } => write!(out, "s3://{bucket}/{prefix}"),
        }
    }
}

/// An archive: a URL, a bucket, or otherwise a folder.
pub(super) const ARCHIVE: Parsed<ArchiveBase> = displayed(|text| {
    let wrong = |why: &str| {
        let mend = r#"write "https://HOST", "s3://BUCKET/PREFIX" or the path of a folder"#;
        Wrong::new(format!("{} is not an archive: {why}", quoted(text)), mend)
    };
    match text.split_once("://") {
        Some(("http" | "https", _)) => {
            let url = WebUrl::parse(&in_slash(text)).map_err(|fault| wrong(&fault.to_string()));
            url.map(ArchiveBase::Web)
        }
        Some(("s3", place)) => {
            let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
            let prefix = if prefix.is_empty() { String::new() } else { in_slash(prefix) };
            let is_usable = is_bucket(bucket) && prefix.bytes().all(|b| b.is_ascii_graphic());
            let s3 = ArchiveBase::S3 { bucket: bucket.to_owned(), prefix };
            is_usable.then_some(s3).ok_or_else(|| wrong("the name of the bucket is invalid"))
        }
        Some(_) => Err(wrong("its scheme is not http, https or s3")),
        None if text.is_empty() => Err(wrong("it is empty")),
        None => Ok(ArchiveBase::Folder(PathBuf::from(text))),
    }
});

fn in_slash(text: &str) -> String {
    format!("{}/", text.trim_end_matches('/'))
}

/// Follows the naming rules of S3, since the bucket becomes part of a host name.
fn is_bucket(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    (3..=63).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with(['.', '-'])
        && !name.ends_with(['.', '-'])
        && !name.contains("..")
}

/// The name of a crawl, such as `CC-MAIN-2024-30`. It becomes part of a path.
pub(super) const CRAWL_NAME: Parsed<String> = displayed(|text| {
    const MOST_BYTES: usize = 100;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let in_bounds = (1..=MOST_BYTES).contains(&text.len());
    if !in_bounds || !text.bytes().all(allowed) || text.starts_with('.') {
        return Err(Wrong::new(
            format!("{} is not the name of a crawl", quoted(text)),
            "write it as its archive does, such as \"CC-MAIN-2024-30\"",
        ));
    }
    Ok(text.to_owned())
});

#[cfg(test)]
mod tests {
    use super::super::kinds::Kind;
    use super::super::layer::Raw;
    use super::*;

    fn base(text: &str) -> Option<ArchiveBase> {
        ARCHIVE.read(&Raw::One(text.to_owned())).ok()
    }

    #[test]
    fn an_archive_is_on_the_web_in_a_bucket_or_in_a_folder() {
        let web = |url: &str| Some(ArchiveBase::Web(WebUrl::parse(url).unwrap()));
        let s3 = |bucket: &str, prefix: &str| {
            Some(ArchiveBase::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        assert_eq!(base("https://data.test"), web("https://data.test/"));
        assert_eq!(base("http://127.0.0.1:9000/a/b"), web("http://127.0.0.1:9000/a/b/"));
        assert_eq!(base("s3://commoncrawl"), s3("commoncrawl", ""));
        assert_eq!(base("s3://commoncrawl/a/b/"), s3("commoncrawl", "a/b/"));
        for folder in ["/data/cc", "cc", ".", "C:\\cc"] {
            assert_eq!(base(folder), Some(ArchiveBase::Folder(folder.into())));
        }
        for bad in ["", "ftp://x", "https://", "s3://", "s3://A", "s3://a..b", "s3://x y/z"] {
            assert_eq!(base(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_name_of_a_crawl_leads_nowhere_else() {
        let crawl = |text: &str| CRAWL_NAME.read(&Raw::One(text.to_owned())).ok();
        assert!(crawl("CC-MAIN-2024-30").is_some());
        for bad in ["", "..", "a/b", "a b", "a?b", ".hidden"] {
            assert_eq!(crawl(bad), None, "{bad}");
        }
    }
}

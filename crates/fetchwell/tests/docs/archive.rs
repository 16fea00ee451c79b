//! A small web archive in place of Common Crawl's.

use std::path::Path;

use tempfile::TempDir;

#[path = "../it/commoncrawl_batch/archive.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod small;

use small::{CRAWL, TestArchive, page};

/// The crawl that the pages speak of.
pub(crate) const NAMED: &str = "CC-MAIN-2024-30";

/// The archive, laid out as Common Crawl lays out its own.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    archive().write(folder.path());
    let collections = folder.path().join("cc-index/collections");
    std::fs::rename(collections.join(CRAWL), collections.join(NAMED)).expect("it has a name");
    folder
}

/// Puts `cluster.idx` where a reader who followed the page has it.
pub(crate) fn put_index(folder: &Path) {
    std::fs::write(folder.join("cluster.idx"), archive().index).expect("it is written");
}

fn archive() -> TestArchive {
    let mut archive = TestArchive::default();
    archive.add_block(&[page("", Some("eng")), page("docs/guide", Some("eng,deu"))]);
    archive.add_block(&[page("docs/handbuch", Some("deu")), page("news/1", Some("eng"))]);
    archive
}

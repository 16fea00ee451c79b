//! What is written.

use std::collections::HashMap;
use std::fs;

use fetchwell_engine::ports::batches::Batch;
use fetchwell_testkit::range_server::RangeServer;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::archive::{TestArchive, html, record, text, url};
use super::ground::Ground;
use crate::gzip_bomb::gzip_bomb;

async fn served(archive: &TestArchive) -> RangeServer {
    RangeServer::sound(archive.files.clone()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_a_batch_becomes_a_document() {
    let archive = TestArchive::of(3, 40);
    let server = served(&archive).await;
    for ground in Ground::all(&server.base()).await {
        let before = server.requests();
        ground.publish(&archive.batches(50)).await;
        ground.work_until(&[], 120).await;
        let documents = ground.documents();
        assert_eq!(documents.len(), 120);
        let first = &documents[&("crawl-data/0.warc.gz".to_owned(), 0)];
        let hash: String =
            Sha256::digest(text(0)).iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = json!({
            "url": url(0), "surt": "com,example)/0", "timestamp": "20240712000102", "lang": "eng",
            "title": "Page 0", "text": text(0), "content_hash": hash,
            "warc": {
                "filename": "crawl-data/0.warc.gz", "offset": 0,
                "length": archive.pages[0]["metadata"]["length"].as_str().unwrap().parse::<u64>().unwrap(),
            },
        });
        assert_eq!(first, &expected);
        assert!(server.requests() - before <= 10, "near pages are asked for together");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_comes_again_writes_nothing() {
    let archive = TestArchive::of(1, 30);
    let server = served(&archive).await;
    for ground in Ground::all(&server.base()).await {
        ground.publish(&archive.batches(10)).await;
        ground.work_until(&[], 30).await;
        let mut again = archive.batches(10);
        let longer = TestArchive::of(1, 31).batches(31).remove(0);
        again.push(Batch { id: "longer".to_owned(), ..longer });
        ground.publish(&again).await;
        ground.work_until(&[], 31).await;
        assert_eq!(ground.documents().len(), 31 - 1, "the last page is not in the archive");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_written_where_they_are_asked_for() {
    let archive = TestArchive::of(1, 30);
    let server = served(&archive).await;
    let ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(10)).await;
    ground.work_until(&["--format", "parquet"], 30).await;
    let mut rows = Vec::new();
    for path in ground.files(".parquet") {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        rows.extend(reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()));
    }
    assert_eq!(rows.len(), 30);
    assert!(rows[0].contains("lang: \"eng\", title: \"Page"), "{}", rows[0]);
    assert!(ground.files(".part").is_empty() && ground.files(".unfinished").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_leave_out_what_is_not_wanted() {
    let mut archive = TestArchive::of(1, 3);
    archive.add("crawl-data/0.warc.gz", &record(3, b"<html><p>Short.</p></html>"));
    archive.add("crawl-data/0.warc.gz", &record(4, &html(4)));
    archive.pages[4]["metadata"]["languages"] = "zho,eng".into();
    archive.add("crawl-data/0.warc.gz", &record(5, &html(5)));
    let server = served(&archive).await;
    let ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(50)).await;
    ground.work_until(&["--min-length", "20", "--lang", "eng"], 4).await;
    let titles: Vec<_> =
        ground.documents().into_values().map(|document| document["title"].to_string()).collect();
    assert_eq!(titles, ["\"Page 0\"", "\"Page 1\"", "\"Page 2\"", "\"Page 5\""]);
    assert!(ground.errors().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_may_be_a_folder() {
    let archive = TestArchive::of(2, 5);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("crawl-data")).unwrap();
    for (name, bytes) in &archive.files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let ground = Ground::embedded(folder.path().to_str().unwrap()).await;
    ground.publish(&archive.batches(5)).await;
    ground.work_until(&[], 10).await;
    assert_eq!(ground.documents().len(), 10);
}

/// Whatever lies in the archive: each page is a document, or stands in the file of errors.
#[tokio::test(flavor = "multi_thread")]
async fn bad_records_are_kept_with_their_place_and_stop_nothing() {
    let mut archive = TestArchive::of(1, 2);
    let file = "crawl-data/0.warc.gz";
    let good = record(0, &html(0));
    archive.add(file, &good[..good.len() / 2]); // 2: cut off.
    archive.add(file, b"<html>An error page in place of a record</html>"); // 3
    archive.add(file, &good); // 4: its length is wrong.
    archive.pages[4]["metadata"]["length"] = "99999999".into();
    archive.add(file, &good); // 5: its offset is behind the end.
    archive.pages[5]["metadata"]["offset"] = "88888888".into();
    archive.add(file, &good); // 6: no offset at all.
    archive.pages[6]["metadata"].as_object_mut().unwrap().remove("offset");
    archive.add(file, &good); // 7: leads elsewhere.
    archive.pages[7]["metadata"]["filename"] = "../../etc/passwd".into();
    archive.add("missing.warc.gz", &good); // 8: no such file.
    archive.files.remove("missing.warc.gz");
    archive.add(file, &gzip_bomb(256)); // 9: 256 MiB when inflated.
    archive.add(file, &record(10, &html(10))); // 10: good.
    let server = served(&archive).await;
    for ground in Ground::all(&server.base()).await {
        ground.publish(&archive.batches(50)).await;
        // Two of them have no place to be known by.
        ground.work_until(&[], 9).await;
        assert_eq!(ground.documents().len(), 3);
        let kinds: HashMap<String, String> = ground
            .errors()
            .iter()
            .map(|line| {
                let text = |name: &str| line[name].as_str().unwrap().to_owned();
                (text("surt").replace("com,example)/", ""), text("kind"))
            })
            .collect();
        let expected = [
            ("2", "truncated"),
            ("3", "warc"),
            ("4", "range"),
            ("5", "unread"),
            ("6", "place"),
            ("7", "place"),
            ("8", "unread"),
            ("9", "too_large"),
        ];
        assert_eq!(kinds, expected.map(|(page, kind)| (page.to_owned(), kind.to_owned())).into());
    }
}

/// Others write batches, too: an item that they write in another way is the same page, and one that is none
/// costs nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn an_odd_item_costs_no_other_of_its_batch() {
    let mut archive = TestArchive::of(1, 4);
    let metadata = archive.pages[0]["metadata"].as_object_mut().unwrap();
    metadata.insert("offset".to_owned(), json!(0));
    metadata.insert("charset".to_owned(), json!(null));
    archive.pages[1]["found_by"] = json!({"somebody": "else"});
    archive.pages[2].as_object_mut().unwrap().remove("timestamp");
    let server = served(&archive).await;
    archive.pages.push(json!("no page"));
    for ground in Ground::all(&server.base()).await {
        ground.publish(&archive.batches(50)).await;
        ground.work_until(&[], 4).await;
        assert_eq!(ground.documents().len(), 3);
        let errors = ground.errors();
        assert!(errors.iter().all(|line| line["kind"] == "item"), "{errors:?}");
        let reasons: Vec<&str> =
            errors.iter().map(|line| line["reason"].as_str().unwrap()).collect();
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert!(reasons[0].contains("item 3 of 5") && reasons[0].contains("timestamp"));
        assert!(reasons[1].contains("item 5 of 5"), "{reasons:?}");
    }
}

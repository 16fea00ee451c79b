//! Which pages are wanted: each filter, and what it left out.

use serde_json::{Value, json};

use super::archive::{TestArchive, TestPage, page};
use super::rig::{Rig, urls};

fn with(path: &str, languages: Option<&str>, field: &'static str, value: Value) -> TestPage {
    let mut page = page(path, languages);
    page.fields.push((field, value));
    page
}

fn archive() -> TestArchive {
    let mut archive = TestArchive::default();
    archive.add_block(&[
        page("a-eng", Some("eng")),
        page("b-zho-eng", Some("zho,eng")),
        page("c-eng-zho", Some("eng,zho")),
        page("d-engx", Some("engx")),
        page("e-none", None),
        page("f-empty", Some("")),
        with("g-404", Some("eng"), "status", json!("404")),
        with("h-pdf", Some("eng"), "mime", json!("application/pdf")),
        with("i-long", Some("eng"), "length", json!("999999")),
    ]);
    archive
}

#[tokio::test(flavor = "multi_thread")]
async fn each_filter_leaves_out_what_it_says_and_counts_it() {
    let archive = archive();
    for (arguments, wanted, filtered) in [
        (&[][..], "abchi", json!({"language": 3, "status": 1})),
        (&["--lang", "zho"], "bc", json!({"language": 6, "status": 1})),
        (&["--primary"], "achi", json!({"language": 4, "status": 1})),
        (&["--lang", "any"], "abcdefhi", json!({"status": 1})),
        (&["--lang", "any", "--status", "any"], "abcdefghi", json!({})),
        (&["--status", "404"], "g", json!({"status": 8})),
        (&["--mime", "application/pdf"], "h", json!({"language": 3, "mime": 4, "status": 1})),
        (
            &["--url-prefix", "https://example.com/b"],
            "b",
            json!({"language": 3, "status": 1, "url_prefix": 4}),
        ),
        (&["--max-length", "100KB"], "abch", json!({"language": 3, "length": 1, "status": 1})),
        (&["--min-length", "100KB"], "i", json!({"language": 3, "length": 4, "status": 1})),
    ] {
        let rig = Rig::in_folder(&archive);
        let told = rig.told(arguments).await;
        let letter = |url: &String| url.split('/').nth(3).unwrap().chars().next().unwrap();
        let published: String = urls(&rig.published().await).iter().map(letter).collect();
        assert_eq!(published, wanted, "{arguments:?}");
        assert_eq!(told["filtered"], filtered, "{arguments:?}");
        assert_eq!(told["lines"], json!(9));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_filter_does_not_go_on_with_the_batches_of_the_first() {
    let rig = Rig::in_folder(&archive());
    rig.told(&["--limit", "1"]).await;
    let refused = rig.batch(&["--lang", "zho"]).await.expect_code(2);
    assert!(refused.stderr.contains("another --lang"), "{}", refused.stderr);
}

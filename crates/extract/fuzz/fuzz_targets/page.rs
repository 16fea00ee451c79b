//! Any bytes are a page: nothing panics, no field grows out of proportion, and the short way finds what the long one
//! does.

#![no_main]

use fetchwell_extract::{decode, extract, extract_text};
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|body: &[u8]| {
    // The title of a home page is chosen in another way.
    let path = if body.len().is_multiple_of(2) { "a/b" } else { "" };
    let url = Url::parse("https://site.test/").unwrap().join(path).unwrap();
    for content_type in [None, Some("text/html; charset=utf-8"), Some("text/html; charset=gb18030")]
    {
        let html = decode(body, content_type).text;
        let article = extract(&html, &url);
        assert!(article.text.len() <= 3 * html.len());
        assert!(article.markdown.len() < 5 * html.len() + 200_000);
        assert!(article.published.is_none_or(|date| date.get(4..5) == Some("-")));
        let titled = extract_text(&html, &url);
        assert_eq!((titled.title, titled.text), (article.title, article.text));
    }
});

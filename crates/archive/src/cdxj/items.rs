//! The items of a batch, possibly written by other programs: an invalid item does not affect the others.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::record::CdxRecord;
use crate::shared_error::SharedError;

/// An item of a batch: a page, or an invalid item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchItem {
    /// The page, or as much of it as could be read.
    pub record: CdxRecord,
    /// Why it is not a page, if it is not.
    pub fault: Option<ItemFault>,
}

/// Why an item of a batch is not a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemFault {
    /// It is another JSON value.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// This field is missing or is not a string.
    #[error("its `{0}` is missing, or is not a string")]
    NoText(&'static str),
    /// It has no metadata.
    #[error("its `metadata` is missing, or is not a JSON object")]
    NoMetadata,
    /// It is valid JSON, but cannot be represented: an unpaired surrogate, a number out of range.
    #[error("it could not be parsed: {0}")]
    Json(#[source] SharedError<serde_json::Error>),
}

/// Reads a batch. Only input that is not a JSON array is an error of the whole batch. Nearly all batches are as this
/// program writes them, and are parsed at once; otherwise each item is parsed by itself.
pub fn read_batch(json: &[u8]) -> serde_json::Result<Vec<BatchItem>> {
    if let Ok(records) = serde_json::from_slice::<Vec<CdxRecord>>(json) {
        let sound = |record| BatchItem { record, fault: None };
        return Ok(records.into_iter().map(sound).collect());
    }
    let items: Vec<&RawValue> = serde_json::from_slice(json)?;
    Ok(items.into_iter().map(|item| BatchItem::read(item.get())).collect())
}

impl BatchItem {
    fn read(json: &str) -> BatchItem {
        match serde_json::from_str(json) {
            Ok(Value::Object(object)) => BatchItem::of(object),
            Ok(_) => BatchItem::nothing(ItemFault::NotAnObject),
            Err(error) => BatchItem::nothing(ItemFault::Json(error.into())),
        }
    }

    fn nothing(fault: ItemFault) -> BatchItem {
        BatchItem { record: CdxRecord::default(), fault: Some(fault) }
    }

    /// Unknown fields are ignored.
    fn of(object: Map<String, Value>) -> BatchItem {
        let mut surt_url = None;
        let mut timestamp = None;
        let mut metadata = None;
        for (name, value) in object {
            match (name.as_str(), value) {
                ("surt_url", Value::String(text)) => surt_url = Some(text),
                ("timestamp", Value::String(text)) => timestamp = Some(text),
                ("timestamp", Value::Number(number)) => timestamp = Some(number.to_string()),
                ("metadata", Value::Object(fields)) => metadata = Some(texts(fields)),
                _ => {}
            }
        }
        let fault = match (&surt_url, &timestamp, &metadata) {
            (_, _, None) => Some(ItemFault::NoMetadata),
            (None, _, _) => Some(ItemFault::NoText("surt_url")),
            (_, None, _) => Some(ItemFault::NoText("timestamp")),
            _ => None,
        };
        let record = CdxRecord {
            surt_url: surt_url.unwrap_or_default(),
            timestamp: timestamp.unwrap_or_default(),
            metadata: metadata.unwrap_or_default(),
        };
        BatchItem { record, fault }
    }
}

/// Values that are not strings are kept as JSON text; null means that there is none.
fn texts(fields: Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    fields.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = r#"{"surt_url":"com,a)/","timestamp":"20240712000102","metadata":{"offset":"77","length":"9","filename":"a/b.gz"}}"#;

    fn page() -> CdxRecord {
        serde_json::from_str(PAGE).unwrap()
    }

    #[test]
    fn an_item_that_is_written_oddly_is_the_same_page() {
        for odd in [
            PAGE.to_owned(),
            PAGE.replace(r#""77""#, "77"),
            PAGE.replace(r#""20240712000102""#, "20240712000102"),
            PAGE.replace(r#""offset""#, r#""mime":null,"offset""#),
            PAGE.replace(r#""timestamp""#, r#""seen":[1,{}],"timestamp""#),
            PAGE.replace(r#""timestamp""#, r#""timestamp":"1","timestamp""#),
        ] {
            for batch in [format!("[{odd}]"), format!("[7,{odd}]")] {
                let read = read_batch(batch.as_bytes()).unwrap().pop().unwrap();
                assert_eq!(read, BatchItem { record: page(), fault: None }, "{batch}");
            }
        }
        let odd = PAGE.replace(r#""9""#, r#"true,"x":1.5,"y":[1, "z"]"#);
        let read = read_batch(format!("[{odd}]").as_bytes()).unwrap().pop().unwrap();
        let said = |name: &str| read.record.metadata.get(name).map(String::as_str);
        assert_eq!(
            (said("length"), said("x"), said("y")),
            (Some("true"), Some("1.5"), Some(r#"[1,"z"]"#))
        );
    }

    #[test]
    fn what_is_no_page_says_why_and_spoils_no_other() {
        for (odd, fault) in [
            ("7".to_owned(), ItemFault::NotAnObject),
            ("null".to_owned(), ItemFault::NotAnObject),
            ("[]".to_owned(), ItemFault::NotAnObject),
            ("{}".to_owned(), ItemFault::NoMetadata),
            (PAGE.replace(r#"{"offset""#, r#"[],"x":{"offset""#), ItemFault::NoMetadata),
            (PAGE.replace("timestamp", "time"), ItemFault::NoText("timestamp")),
            (PAGE.replace(r#""com,a)/""#, "null"), ItemFault::NoText("surt_url")),
        ] {
            let read = read_batch(format!("[{PAGE},{odd},{PAGE}]").as_bytes()).unwrap();
            assert_eq!(read[1].fault, Some(fault), "{odd}");
            let sound = BatchItem { record: page(), fault: None };
            assert_eq!((read.len(), &read[0], &read[2]), (3, &sound, &sound), "{odd}");
        }
        for odd in [r#""\ud800""#, r#"{"metadata":{"a":"\udc00"}}"#, "1e999"] {
            let read = read_batch(format!("[{odd},{PAGE}]").as_bytes()).unwrap();
            assert!(matches!(read[0].fault, Some(ItemFault::Json(_))), "{odd}: {read:?}");
            assert_eq!(read[1].record, page());
        }
        let read =
            read_batch(format!("[{}]", PAGE.replace("timestamp", "time")).as_bytes()).unwrap();
        assert_eq!(read[0].record.offset(), Some(77), "what there is of it is kept");
    }

    #[test]
    fn what_is_no_array_is_a_fault_of_the_whole() {
        for body in ["", "{}", "7", "null", "\u{0}", "[1", "[1,]", "[] []", "[{]"] {
            assert!(read_batch(body.as_bytes()).is_err(), "{body}");
        }
        assert!(read_batch(b"[]").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_batch_or_a_fault(body in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(read_batch(&body));
            let array = [&b"["[..], &body, b"]"].concat();
            drop(read_batch(&array));
        }
    }
}

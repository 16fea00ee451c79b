//! Serializes bytes that are nearly always text as text, so that people can read them in a store.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes(Vec<u8>),
}

/// Writes a string if the bytes are UTF-8, otherwise an array of numbers.
pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    let form = bytes.as_ref().map(|bytes| match std::str::from_utf8(bytes) {
        Ok(text) => Form::Text(text.into()),
        Err(_) => Form::Bytes(bytes.clone()),
    });
    form.serialize(serializer)
}

/// Accepts both forms.
pub fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<u8>>, D::Error> {
    let form = Option::<Form<'de>>::deserialize(deserializer)?;
    Ok(form.map(|form| match form {
        Form::Text(text) => text.into_owned().into_bytes(),
        Form::Bytes(bytes) => bytes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "super")]
        bytes: Option<Vec<u8>>,
    }

    #[test]
    fn text_reads_as_text_and_anything_comes_back_as_it_was() {
        for (bytes, json) in [
            (None, r#"{"bytes":null}"#),
            (Some(b"Disallow: /\n\0".to_vec()), r#"{"bytes":"Disallow: /\n\u0000"}"#),
            (Some(vec![0xFF, 0x41]), r#"{"bytes":[255,65]}"#),
        ] {
            let holder = Holder { bytes };
            assert_eq!(serde_json::to_string(&holder).unwrap(), json);
            assert_eq!(serde_json::from_str::<Holder>(json).unwrap(), holder);
        }
    }
}

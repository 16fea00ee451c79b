//! JSON Feed, read item by item: a syntax error loses what follows it, but nothing before it.

use std::fmt;

use fetchwell_policy::url::WebUrl;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::date;
use crate::draft::{Draft, link, plain};
use crate::feed::{Feed, FeedFormat};

/// Reads a document; `None` if it has no items.
pub(crate) fn read(document: &str, found_at: &WebUrl) -> Option<Feed> {
    let feed = Feed::new(FeedFormat::Json, found_at);
    let mut reading = Reading { feed, found_at, has_items: false };
    let mut json = serde_json::Deserializer::from_str(document);
    reading.feed.gaps.ends_early = json.deserialize_map(&mut reading).is_err();
    reading.has_items.then_some(reading.feed)
}

struct Reading<'a> {
    feed: Feed,
    found_at: &'a WebUrl,
    has_items: bool,
}

fn draft(item: &Value, found_at: &WebUrl) -> Draft {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let address = |name: &str| text(name).and_then(|text| link(text, found_at));
    let id = text("id").filter(|id| id.trim_start().starts_with("http"));
    Draft {
        title: text("title").unwrap_or_default().to_owned(),
        page: address("url").or_else(|| address("external_url")),
        otherwise: None,
        id: id.and_then(|id| link(id, found_at)),
        published: text("date_published").and_then(date::read),
        updated: text("date_modified").and_then(date::read),
        original: None,
    }
}

impl<'de> Visitor<'de> for &mut Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a feed")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "items" => {
                    self.has_items = true;
                    map.next_value_seed(Items(self))?;
                }
                "title" => {
                    let title: Value = map.next_value()?;
                    self.feed.title = plain(title.as_str().unwrap_or_default());
                }
                "home_page_url" => {
                    let address: Value = map.next_value()?;
                    if let Some(page) = address.as_str().and_then(|text| link(text, self.found_at))
                    {
                        self.feed.home.name_page(&page);
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Items<'a, 'b>(&'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Value>()? {
            self.0.feed.add(draft(&item, self.0.found_at).entry());
        }
        Ok(())
    }
}

//! `fields=`: the fields of a result that a response has.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AnyOfBuilder, Object, Schema, Type};
use utoipa::openapi::{AllOf, ObjectBuilder, Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::views::messages::OutboxView;

/// The fields that every result has.
const ALWAYS: [&str; 2] = ["cursor", "id"];

/// All fields of a result, from its OpenAPI schema, so that a new field needs no second entry.
static ALL: LazyLock<BTreeSet<String>> = LazyLock::new(|| match OutboxView::schema() {
    RefOr::T(Schema::Object(Object { properties, .. })) => properties.into_keys().collect(),
    RefOr::T(Schema::AllOf(AllOf { items, .. })) => items
        .into_iter()
        .filter_map(|item| match item {
            RefOr::T(Schema::Object(Object { properties, .. })) => Some(properties.into_keys()),
            _ => None,
        })
        .flatten()
        .collect(),
    _ => BTreeSet::new(),
});

/// Which fields of a result to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResultFields(Option<BTreeSet<String>>);

impl ResultFields {
    /// Parses names separated by commas. `None` if one of them is not a field of a result.
    pub(super) fn read(value: &str) -> Option<ResultFields> {
        let named = value.split(',').map(|name| ALL.get(name).cloned());
        let always = ALWAYS.iter().map(|name| Some((*name).to_owned()));
        named.chain(always).collect::<Option<_>>().map(|names| ResultFields(Some(names)))
    }

    /// The result with these fields only.
    pub(super) fn of(&self, view: OutboxView) -> ChosenResult {
        let Some(names) = &self.0 else { return ChosenResult::Whole(Box::new(view)) };
        let Ok(Value::Object(mut fields)) = serde_json::to_value(view) else {
            return ChosenResult::Part(Map::new());
        };
        fields.retain(|name, _| names.contains(name));
        ChosenResult::Part(fields)
    }
}

/// A result, or the fields of it that the caller asked for.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ChosenResult {
    Whole(Box<OutboxView>),
    Part(Map<String, Value>),
}

impl PartialSchema for ChosenResult {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let part = ObjectBuilder::new()
            .property("cursor", text())
            .property("id", text())
            .required("cursor")
            .required("id")
            .description(Some("With `fields`: only these fields, besides `cursor` and `id`."));
        let either = AnyOfBuilder::new()
            .item(Ref::from_schema_name(OutboxView::name()))
            .item(part)
            .description(Some("A result, or the fields of it that `fields` names."));
        either.into()
    }
}

impl ToSchema for ChosenResult {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("OutboxResult")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((OutboxView::name().into_owned(), OutboxView::schema()));
        OutboxView::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::options::{Extracted, ExtractedArticle};
    use fetchwell_engine::ports::inbox::{FetchResult, MessageId, OutboxMessage};
    use fetchwell_policy::time::Time;

    use super::*;

    fn view() -> OutboxView {
        let article = Some(ExtractedArticle::default());
        let extracted = Extracted { article, links: Some(Vec::new()), ..Extracted::default() };
        let extracted = serde_json::to_string(&extracted).ok();
        let result = FetchResult { extracted, ..FetchResult::default() };
        OutboxView::from(OutboxMessage {
            cursor: 7,
            message: MessageId([1; 16]),
            url: "http://a.test/".to_owned(),
            retailer: "shop".to_owned(),
            correlation_id: "c".to_owned(),
            created_at: Time::EPOCH,
            result,
        })
    }

    fn names(chosen: &ChosenResult) -> Vec<String> {
        let json = serde_json::to_value(chosen).unwrap();
        json.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn every_field_of_a_result_can_be_asked_for_by_name() {
        for name in names(&ResultFields::default().of(view())) {
            let chosen = ResultFields::read(&name).expect("it is a field").of(view());
            assert!(names(&chosen).contains(&name), "{name}");
        }
    }

    #[test]
    fn cursor_and_id_are_always_there() {
        let chosen = ResultFields::read("url,status").unwrap().of(view());
        assert_eq!(names(&chosen), ["cursor", "id", "status", "url"]);
    }

    #[test]
    fn an_unknown_name_is_no_field() {
        for wrong in ["", "colour", "url,", ",", "url,colour", "URL", "url status"] {
            assert_eq!(ResultFields::read(wrong), None, "{wrong}");
        }
    }
}

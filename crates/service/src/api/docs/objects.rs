//! The objects of the OpenAPI document, with their fields and types.

use serde_json::Value;

use super::{entries, escape, list, text};

/// The name of the object that a schema refers to.
pub(super) fn schema_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// A field of an object.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) is_required: bool,
}

impl<'a> Field<'a> {
    /// Its description. A nullable field has it in the first of its alternatives.
    pub(super) fn about(&self) -> &'a str {
        let own = text(&self.schema["description"]);
        if own.is_empty() { text(&self.schema["oneOf"][0]["description"]) } else { own }
    }
}

/// An object's own fields and those of its parts; the fields of a nullable part are optional.
pub(super) fn fields<'a>(schema: &'a Value, schemas: &'a Value) -> Vec<Field<'a>> {
    let required = list(&schema["required"]);
    let own = entries(&schema["properties"]).map(|(name, schema)| Field {
        name,
        schema,
        is_required: required.iter().any(|one| one == name),
    });
    let mut all: Vec<Field<'_>> = own.collect();
    for part in list(&schema["allOf"]) {
        all.extend(fields(part, schemas));
        all.extend(schema_name(part).into_iter().flat_map(|name| fields(&schemas[name], schemas)));
        for name in list(&part["oneOf"]).iter().filter_map(schema_name) {
            let fields = fields(&schemas[name], schemas).into_iter();
            all.extend(fields.map(|field| Field { is_required: false, ..field }));
        }
    }
    all
}

/// The type of a schema, as HTML.
pub(super) fn type_of(schema: &Value) -> String {
    if let Some(name) = schema_name(schema) {
        return format!("<a href=\"#schema-{0}\">{0}</a>", escape(name));
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("array of {}", type_of(&schema["items"])),
        Value::String(name) => escape(name),
        Value::Array(names) => escape(&names.iter().map(text).collect::<Vec<_>>().join(" or ")),
        _ => list(&schema["oneOf"]).iter().map(type_of).collect::<Vec<_>>().join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::html;

    #[test]
    fn an_object_shows_its_fields_and_those_of_its_parts() {
        let schemas = json!({
            "More": {"properties": {"title": {"type": "string"}}, "required": ["title"]},
            "One": {"allOf": [
                {"oneOf": [{"$ref": "#/components/schemas/More"}, {"type": "null"}]},
                {"properties": {"id": {"type": ["string", "null"], "description": "its name"}},
                 "required": ["id"]},
            ]},
        });
        let page = html(&json!({"components": {"schemas": schemas}}));
        let one = page.split("schema-One").nth(1).unwrap();
        assert!(one.contains("<code>title</code> <i>optional</i></td><td>string<"), "{one}");
        assert!(one.contains("<code>id</code></td><td>string or null</td><td>its name<"), "{one}");
    }
}

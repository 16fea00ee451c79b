//! The objects of the OpenAPI document, as tables of their fields.

use serde_json::Value;

use super::{escape, prose, push, text};

/// Writes all objects.
pub(super) fn write_objects(page: &mut String, schemas: &Value) {
    page.push_str("<h2 id=\"schemas\">Objects</h2>\n");
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        let name = escape(name);
        let about = prose(text(&schema["description"]));
        push(page, format_args!("<section id=\"schema-{name}\"><h3>{name}</h3><p>{about}</p>"));
        let fields = fields(schema, schemas);
        if fields.is_empty() {
            push(page, format_args!("<p>{}</p>", type_of(schema)));
        } else {
            page.push_str("<table><tr><th>field</th><th>type</th><th></th></tr>");
            fields.iter().for_each(|field| field.write(page));
            page.push_str("</table>");
        }
        page.push_str("</section>\n");
    }
}

/// The name of the object that a schema refers to.
pub(super) fn schema_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

impl Field<'_> {
    fn write(&self, page: &mut String) {
        let mark = if self.is_required { "" } else { " <i>optional</i>" };
        // A nullable field has its description in the first of its alternatives.
        let own = text(&self.schema["description"]);
        let about =
            if own.is_empty() { text(&self.schema["oneOf"][0]["description"]) } else { own };
        push(
            page,
            format_args!(
                "<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{}</td></tr>",
                escape(self.name),
                type_of(self.schema),
                prose(about),
            ),
        );
    }
}

/// An object's own fields and those of its parts; the fields of a nullable part are optional.
fn fields<'a>(schema: &'a Value, schemas: &'a Value) -> Vec<Field<'a>> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().map(text).collect();
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, schema)| Field {
        name,
        schema,
        is_required: required.contains(&name.as_str()),
    });
    let mut all: Vec<Field<'_>> = own.collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        all.extend(fields(part, schemas));
        let optional = part["oneOf"].as_array().into_iter().flatten();
        for name in optional.filter_map(schema_name) {
            let fields = fields(&schemas[name], schemas).into_iter();
            all.extend(fields.map(|field| Field { is_required: false, ..field }));
        }
    }
    all
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema_name(schema) {
        return format!("<a href=\"#schema-{0}\">{0}</a>", escape(name));
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("array of {}", type_of(&schema["items"])),
        Value::String(name) => escape(name),
        Value::Array(names) => escape(&names.iter().map(text).collect::<Vec<_>>().join(" or ")),
        _ => {
            let parts = schema["oneOf"].as_array().into_iter().flatten();
            parts.map(type_of).collect::<Vec<_>>().join(" or ")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let mut page = String::new();
        write_objects(&mut page, &schemas);
        let one = page.split("schema-One").nth(1).unwrap();
        assert!(one.contains("<code>title</code> <i>optional</i></td><td>string<"), "{one}");
        assert!(one.contains("<code>id</code></td><td>string or null</td><td>its name<"), "{one}");
    }
}

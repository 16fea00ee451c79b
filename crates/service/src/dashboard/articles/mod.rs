//! Lists articles by category, and shows each in a reader view.

mod list;
mod one;
mod reader;

use fetchwell_engine::ports::articles::Fields;

pub(super) use list::page;
pub(super) use one::page as article;

fn field<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).map_or("", String::as_str)
}

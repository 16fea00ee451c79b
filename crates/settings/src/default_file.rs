//! The commented default file, generated from the table of settings.

use serde_json::Value as Json;

use super::key::{Key, group_of};
use super::reader::{Effective, Findings, Reader};
use super::schema::{Category, Retailer, Site, Values};

const HEAD: &str = "\
# Settings of Fetchwell. Each is shown with its default: remove the # to change it.
#
# Flags override the environment, which overrides this file. In the environment, http.max_body is
# FETCHWELL_HTTP__MAX_BODY. Durations take ms, s, m, h, d, as in \"1h30m\"; sizes KiB, MiB, GiB or
# KB, MB, GB. `fetchwell config check` lists errors, `fetchwell config show` the effective values.
";

/// The default file. Comments begin with `# `, and settings that can be uncommented with `#`.
pub fn default_file() -> String {
    let mut text = HEAD.to_owned();
    write_table(&mut text, Values::KEYS, Values::read);
    text.push_str("\n# Sites with their own pace. Add as many tables as you like.\n");
    text.push_str("#[sites.\"example.com\"]\n");
    write_table(&mut text, Site::KEYS, Site::read);
    text.push_str("\n# Retailers with their own limits. Add as many tables as you like.\n");
    text.push_str("#[retailers.example]\n");
    write_table(&mut text, Retailer::KEYS, Retailer::read);
    text.push_str("\n# Categories of links, with the feeds that supply them.\n");
    text.push_str("#[categories.example]\n");
    write_table(&mut text, Category::KEYS, Category::read);
    text
}

fn write_table<T>(text: &mut String, keys: &[Key], read: fn(&mut Reader<'_>) -> Option<T>) {
    let mut group = None;
    for (key, setting) in keys.iter().zip(&defaults(read)) {
        if group_of(key) != group {
            group = group_of(key);
            text.push_str(&format!("\n[{}]\n", group.unwrap_or_default()));
        }
        text.push('\n');
        for line in key.docs {
            text.push_str(&format!("#{line}\n"));
        }
        let name = last(key);
        if key.secret {
            text.push_str(&format!("# Or set {name}_file to a file that contains the value.\n"));
        }
        text.push_str(&format!("#{name} = {}\n", default_literal(key, &setting.value)));
    }
}

/// The default value of every setting of a table.
pub(super) fn defaults<T>(read: fn(&mut Reader<'_>) -> Option<T>) -> Vec<Effective> {
    // Reading without any source returns the defaults, in the notation of each kind.
    let mut findings = Findings::default();
    read(&mut Reader { prefix: String::new(), strongest_first: &[], findings: &mut findings });
    findings.effective
}

/// The default as TOML, as the table writes it (`24h`, not `1d`).
pub(super) fn default_literal(key: &Key, normal_form: &Json) -> String {
    match normal_form {
        Json::String(_) => format!("{:?}", key.default),
        Json::Array(_) => normal_form.to_string(),
        _ => key.default.to_owned(),
    }
}

/// The key within its table.
fn last(key: &Key) -> &'static str {
    key.path.rsplit_once('.').map_or(key.path, |(_, last)| last)
}

//! The reference of all settings in Markdown, generated from the table.

use super::default_file::{default_literal, defaults};
use super::key::{Key, group_of};
use super::reader::{Effective, Reader};
use super::schema::{Category, Retailer, Site, Values};

const HEAD: &str = "\
# Settings

Every setting, with its default. `fetchwell config reference` generates this page, and a test keeps it in sync with the
program.

Precedence, from highest to lowest: flags, environment variables, the variables of a design (see below), the file, the
default. The file is `--config FILE`, else `./fetchwell.toml`, else `fetchwell/fetchwell.toml` in your config folder
(`$XDG_CONFIG_HOME`, else `~/.config`).

```sh
fetchwell config init      # writes a commented fetchwell.toml with every setting and its default
fetchwell config show      # prints the effective values and where each one comes from
fetchwell config check     # lists every error, where it is and how to fix it
```

- In the file, `http.max_body` is `max_body` in the table `[http]`.
- In the environment, it is `FETCHWELL_HTTP__MAX_BODY`. Separate the items of a list with commas.
- Durations take `ms`, `s`, `m`, `h` and `d`, as in `1h30m`. A bare number of a duration flag is seconds.
- Sizes take `KiB`, `MiB`, `GiB` or `KB`, `MB`, `GB`.
- Listen addresses: `ADDR:PORT`, as in `127.0.0.1:8080` or `[::]:8080`. `:9100` is `0.0.0.0:9100`, all addresses of the
  machine, and `localhost:9100` is `127.0.0.1:9100`.
- An unknown key is an error, and so is an invalid value, even if another source overrides it. `fetchwell config check`
  names the file and the line, and says how to fix it.
- A setting that may hold a secret can be read from a file: append `_file` to its name (`store_file`,
  `FETCHWELL_STORE_FILE`, `PAGE_FETCHER_REDIS_URL_FILE`). `config show` never prints the secret.

The designs have their own variables: `PAGE_FETCHER_…` applies to `pages`, `dlq` and `schedule`, and
`RABBITMQ_CONNECTION_STRING` to `commoncrawl`. Both also apply to `config show`, `config check`, `ledger`, `sites` and
`top`, so that these use the same stores; `doctor` checks each command with its own variables. They do not apply to
`fetch`, `explain`, `serve`, `feeds`, `articles` and related commands.
";

/// The content of `docs/settings.md`.
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    write_groups(&mut text);
    for (title, about, rows) in [
        (
            "[sites.\"example.com\"]",
            "Sites with their own pace. Add as many tables as you like. The name is a host, with its port unless that is \
             80 or 443. Use the file: no environment variable can have such a name.",
            rows(Site::KEYS, Site::read),
        ),
        (
            "[retailers.NAME]",
            "Retailers with their own limits. If you set `requests_per_second` here, it is also the pace of each site for \
             the messages of this retailer, in place of `rate`, and so is its `burst_size`. A site with its own rate or a \
             longer Crawl-delay keeps it. Retry-After, the breaker and an operator's order still apply. Other traffic \
             to the site keeps the site's interval. `fetchwell config check` shows which limit applies. In the \
             environment, the `burst_size` of `admhr` is `FETCHWELL_RETAILERS__ADMHR__BURST_SIZE`. \
             `retailer_rate_limits = { admhr = { requests_per_second = 10, burst_size = 20 } }`, at the top level or in \
             `[retriever]`, is another way to write these tables.",
            rows(Retailer::KEYS, Retailer::read),
        ),
        (
            "[categories.NAME]",
            "Categories of links, with the feeds that supply them. These tables can be set only in the file.",
            rows(Category::KEYS, Category::read),
        ),
    ] {
        text.push_str(&format!("\n## {title}\n\n{about}\n"));
        write_rows(&mut text, &rows);
    }
    text
}

fn write_groups(text: &mut String) {
    let rows = rows(Values::KEYS, Values::read);
    for rows in rows.chunk_by(|(a, _), (b, _)| group_of(a) == group_of(b)) {
        let group = rows.first().and_then(|(key, _)| group_of(key));
        let title = group.map_or("Top level".to_owned(), |group| format!("[{group}]"));
        text.push_str(&format!("\n## {title}\n"));
        write_rows(text, rows);
    }
}

/// Each setting of a table, with its default.
fn rows<T>(
    keys: &'static [Key],
    read: fn(&mut Reader<'_>) -> Option<T>,
) -> Vec<(&'static Key, String)> {
    let literal =
        |(key, setting): (&'static Key, Effective)| (key, default_literal(key, &setting.value));
    keys.iter().zip(defaults(read)).map(literal).collect()
}

fn write_rows(text: &mut String, rows: &[(&Key, String)]) {
    text.push_str("\n| setting | default | |\n|---|---|---|\n");
    for (key, default) in rows {
        let mut about: Vec<String> =
            key.docs.iter().map(|line| line.trim().replace('|', "\\|")).collect();
        about.extend(key.own_name.map(|own| format!("Also `{}`.", own.name)));
        about.extend(key.secret.then(|| "May hold a secret.".to_owned()));
        text.push_str(&format!("| `{}` | `{default}` | {} |\n", key.path, about.join(" ")));
    }
}

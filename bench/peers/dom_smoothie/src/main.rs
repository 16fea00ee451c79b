//! dom_smoothie on a folder of pages: `write FOLDER` prints what it makes of them, `time FOLDER` what that costs.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use dom_smoothie::{Config, Readability, TextMode};
use nix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, folder] = arguments.as_slice() else { bail!("usage: write|time FOLDER") };
    let pages = read(Path::new(folder))?;
    match command.as_str() {
        "write" => {
            for (id, url, html) in &pages {
                println!("{}", extract(id, url, html));
            }
        }
        "time" => {
            let before = thread_seconds()?;
            for (id, url, html) in &pages {
                std::hint::black_box(extract(id, url, html));
            }
            println!("{}", json!({ "all_fields": thread_seconds()? - before }));
        }
        other => bail!("no command {other}"),
    }
    Ok(())
}

fn extract(id: &str, url: &str, html: &str) -> Value {
    let config = Config { text_mode: TextMode::Formatted, ..Config::default() };
    let article = Readability::new(html, Some(url), Some(config)).and_then(|mut page| page.parse());
    match article {
        Ok(article) => json!({
            "id": id,
            "text": article.text_content.to_string(),
            "title": article.title,
            "date": article.published_time,
        }),
        Err(_) => json!({ "id": id }),
    }
}

fn read(folder: &Path) -> Result<Vec<(String, String, String)>> {
    let truth: Map<String, Value> =
        serde_json::from_str(&fs::read_to_string(folder.join("truth.json"))?)?;
    let page = |(id, truth): (&String, &Value)| {
        let file = fs::File::open(folder.join(format!("{id}.html.gz"))).context(id.clone())?;
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(file).read_to_end(&mut body)?;
        let url = truth["url"].as_str().unwrap_or_default().to_owned();
        Ok((id.clone(), url, String::from_utf8_lossy(&body).into_owned()))
    };
    truth.iter().map(page).collect()
}

fn thread_seconds() -> Result<f64> {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(now.tv_sec() as f64 + now.tv_nsec() as f64 / 1e9)
}

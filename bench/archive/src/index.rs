//! Generates an index in the format of Common Crawl, and turns it into elements of batches.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use fetchwell_archive::cdxj::{IndexFilter, Language, sift};
use fetchwell_archive::cluster_idx::Lines;
use fetchwell_archive::gzip::Inflater;
use fetchwell_archive::warc::{RecordKind, WarcItem, WarcLimits, WarcReader};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Lines a block, as Common Crawl has them.
const LINES_A_BLOCK: u64 = 3_000;
const MAX_BLOCK_BYTES: usize = 64 << 20;

/// `languages` of a hundred pages in turn; forty are wanted if their status is 200, as it is then.
fn languages(number: u64) -> &'static str {
    match number * 37 % 100 {
        0..25 => "eng",
        25..32 => "zho,eng",
        32..40 => "eng,deu,fra",
        40..43 => "",
        43..60 => "deu",
        60..75 => "rus,ukr",
        75..90 => "zho",
        _ => "spa,cat",
    }
}

/// Writes the index. Says how large it is, and how many lines it has.
pub(crate) fn make(data: &Path, folder: &Path, content_bytes: u64) -> Result<String> {
    let urls = urls(data)?;
    ensure!(!urls.is_empty(), "no sample in {} has an address", data.display());
    let mut cluster = File::create(folder.join("cluster.idx"))?;
    let mut cdx = File::create(folder.join("cdx-00000.gz"))?;
    let mut number = 0;
    let mut content = 0;
    let mut offset = 0;
    let mut block = 0;
    while content < content_bytes {
        let lines: String =
            (number..number + LINES_A_BLOCK).map(|number| line(number, &urls)).collect();
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(lines.as_bytes())?;
        let member = member.finish()?;
        cdx.write_all(&member)?;
        let key = lines.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
        block += 1;
        writeln!(cluster, "{key}\tcdx-00000.gz\t{offset}\t{}\t{block}", member.len())?;
        offset += member.len();
        content += lines.len() as u64;
        number += LINES_A_BLOCK;
    }
    Ok(format!("{content} {offset} {number}"))
}

/// Addresses of captured pages.
fn urls(data: &Path) -> Result<Vec<String>> {
    let mut urls = Vec::new();
    for sample in crate::make::samples(data)? {
        let mut reader = WarcReader::new(File::open(sample)?, WarcLimits::default());
        while let Some(item) = reader.next()? {
            if let WarcItem::Record(record) = item
                && record.kind() == Some(RecordKind::Response)
                && let Some(uri) = record.target_uri()
                && uri.starts_with("http")
            {
                urls.push(uri.replace(['"', '\\', ' '], ""));
            }
        }
    }
    Ok(urls)
}

fn line(number: u64, urls: &[String]) -> String {
    let at = usize::try_from(number).unwrap_or(0) % urls.len();
    let url = &urls[at];
    let languages = languages(number);
    let status = match number * 37 % 100 {
        0..40 => 200,
        n if n % 4 == 0 => 404,
        n if n % 7 == 0 => 301,
        _ => 200,
    };
    let path = url.split_once("://").map_or("", |(_, rest)| rest);
    let digest = format!(
        "{:032X}",
        u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    );
    let tail = match languages {
        "" => String::new(),
        codes => format!(", \"charset\": \"UTF-8\", \"languages\": \"{codes}\""),
    };
    format!(
        "com,site-{number})/{path} 20240712{:06} {{\"url\": \"{url}?page={number}\", \"mime\": \"text/html\", \
         \"mime-detected\": \"text/html\", \"status\": \"{status}\", \"digest\": \"{digest}\", \
         \"length\": \"{}\", \"offset\": \"{}\", \"filename\": \
         \"crawl-data/CC-MAIN-2024-30/segments/1720763514387.30/warc/CC-MAIN-20240712094214-20240712124214-{:05}.warc.gz\"{tail}}}\n",
        number % 1_000_000,
        1_000 + number % 40_000,
        number * 7_919 % 1_000_000_000,
        number % 800,
    )
}

/// Turns an index into elements of batches. Returns a text with the number of lines, and of those that were wanted.
pub(crate) fn batch(folder: &Path) -> Result<String> {
    let filter = IndexFilter {
        status: Some(200),
        language: Some(Language::any("eng")),
        ..IndexFilter::default()
    };
    let mut cdx = File::open(folder.join("cdx-00000.gz"))?;
    let mut inflater = Inflater::default();
    let mut member = Vec::new();
    let mut lines = 0;
    let mut wanted = 0;
    let mut bytes = 0;
    for line in Lines::new(BufReader::new(File::open(folder.join("cluster.idx"))?)) {
        let entry = line?.entry.context("a made index is sound")?;
        cdx.seek(SeekFrom::Start(entry.offset))?;
        member.resize(usize::try_from(entry.length)?, 0);
        cdx.read_exact(&mut member)?;
        let block = inflater.inflate(&member, MAX_BLOCK_BYTES).whole()?;
        let mut json = Vec::new();
        let selection = sift(block, &filter, |line| line.write_json(&mut json));
        lines += selection.lines;
        wanted += selection.wanted;
        bytes += json.len();
    }
    ensure!(bytes > 0, "no line was wanted");
    Ok(format!("{lines} lines, {wanted} wanted"))
}

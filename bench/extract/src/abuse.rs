//! Pages that are broken or mean harm: how long does the worst take, and how much memory?

use std::time::Instant;

use anyhow::{Result, ensure};
use fetchwell_extract::{decode, extract};

use crate::pages::Page;

/// No page may take longer, nor the process more than this beside the pages themselves.
const MAX_SECONDS: f64 = 1.0;
const MAX_MEMORY_BYTES: u64 = 256 << 20;

/// The size of the pages that are one thing over and over.
const LARGE_BYTES: usize = 50 << 20;

/// Whoever asks first whether it is text never gets here with more.
const BINARY_BYTES: usize = 8 << 20;

const CHARSETS: [&str; 6] = ["utf-16", "shift_jis", "gb18030", "iso-2022-jp", "koi8-r", "latin1"];

/// Extracts pages made of these by a seed, and the worst that one can think of. Fails where one
/// takes too long.
pub(crate) fn run(pages: &[Page], count: usize, seed: u64) -> Result<String> {
    let mut chance = Chance(seed | 1);
    let mut worst = (0.0, String::new());
    // What is read already is not the extractor's.
    let before = peak_bytes()?;
    let mut largest = 0;
    for (name, body) in monsters() {
        largest = largest.max(body.len());
        time(&name, &body, None, &mut worst);
    }
    for number in 0..count {
        let Some(page) = chance.of(pages) else { break };
        let (what, body) = mutated(&page.body, &mut chance);
        let charset = chance.of(&CHARSETS).filter(|_| chance.below(4) == 0);
        let content_type = charset.map(|charset| format!("text/html; charset={charset}"));
        time(&format!("{number} {what} {}", page.id), &body, content_type.as_deref(), &mut worst);
    }
    let memory = peak_bytes()?;
    let (seconds, name) = worst;
    ensure!(seconds <= MAX_SECONDS, "{name} took {seconds:.2} s");
    let beside = memory.saturating_sub(before + largest as u64);
    ensure!(beside <= MAX_MEMORY_BYTES, "{} MB beside the pages", beside >> 20);
    Ok(format!(
        "{count} pages, seed {seed}: worst {seconds:.3} s ({name}), {} MB beside the pages",
        beside >> 20
    ))
}

fn time(name: &str, body: &[u8], content_type: Option<&str>, worst: &mut (f64, String)) {
    let Ok(url) = url::Url::parse("https://page.test/a/b") else { return };
    let start = Instant::now();
    std::hint::black_box(extract(&decode(body, content_type).text, &url));
    let seconds = start.elapsed().as_secs_f64();
    if seconds > worst.0 {
        *worst = (seconds, name.to_owned());
    }
}

/// One thing over and over.
fn monsters() -> impl Iterator<Item = (String, Vec<u8>)> {
    let long =
        ["<p>", "<div>", "<a href=x>", "<li>", "<td>", "<br>"].map(|part| (part, LARGE_BYTES));
    let deep = [
        "<div>",
        "<svg>",
        "<b>",
        "<table><tr><td>",
        "<ul><li>",
        "<blockquote>",
        "<x-y>",
        "<time>",
        "<h1>",
        "<a rel=author>",
    ]
    .map(|part| (part, 100_000 * part.len()));
    let short = [
        "&",
        "<",
        "<!--",
        "<script>",
        "<a b='",
        "</p>",
        "<a b=\"c\" ",
        "a=b ",
        "<time>1<br>",
        "<meta name=date content=1>",
    ]
    .map(|part| (part, 500_000 * part.len()));
    let all = long.into_iter().chain(deep).chain(short);
    let repeated =
        all.map(|(part, bytes)| (part.to_owned(), part.repeat(bytes / part.len()).into_bytes()));
    let attributes = format!("<div {}>text", "data-a=b ".repeat(100_000));
    let title = format!("<title>{}</title>", "a | ".repeat(200_000));
    let linked = format!("<script type=application/ld+json>{}", "{\"a\":[".repeat(500_000));
    let binary: Vec<u8> = (0..BINARY_BYTES).map(|at| (at * 31 % 251) as u8).collect();
    let others = [
        ("attributes", attributes.into_bytes()),
        ("linked", linked.into_bytes()),
        ("title", title.into_bytes()),
        ("binary", binary),
    ];
    repeated.chain(others.map(|(name, body)| (name.to_owned(), body)))
}

fn mutated(body: &[u8], chance: &mut Chance) -> (&'static str, Vec<u8>) {
    let mut body = body.to_vec();
    let at = chance.below(body.len() + 1);
    let kind = ["cut", "unclosed", "bytes", "nested", "swapped", "repeated"];
    let what = chance.of(&kind).copied().unwrap_or("cut");
    match what {
        "cut" => body.truncate(at),
        "unclosed" => {
            let open: [&[u8]; 6] =
                [b"<!--", b"<script>", b"<a href=\"", b"<p class='", b"<style>", b"<title>"];
            let insert = chance.of(&open).copied().unwrap_or_default();
            body.splice(at..at, insert.iter().copied());
        }
        "bytes" => {
            for _ in 0..200 {
                let (place, byte) = (chance.below(body.len()), chance.below(256) as u8);
                if let Some(old) = body.get_mut(place) {
                    *old = byte;
                }
            }
        }
        "nested" => {
            body.splice(at..at, b"<div><ul><li><table><tr><td>".repeat(2_000));
        }
        "swapped" => body.rotate_left(at),
        _ => {
            let part = body.get(at..(at + 2_000).min(body.len())).unwrap_or_default().repeat(50);
            body.splice(at..at, part);
        }
    }
    (what, body)
}

/// The most memory that this process has had.
fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

/// Pseudo-random numbers (xorshift): the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn of<'t, T>(&mut self, things: &'t [T]) -> Option<&'t T> {
        things.get(self.below(things.len()))
    }
}

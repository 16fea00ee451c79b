//! A page that is eight times as long takes about eight times as long to read, whatever it is made of.

use std::time::Duration;

use fetchwell_extract::{Limits, extract, links_within};
use nix::time::{ClockId, clock_gettime};
use url::Url;

const BYTES: usize = 32 << 10;
const FACTOR: usize = 8;

/// Linear work takes about 8 times as long, quadratic work 64 times. The rest is for caches and for a busy machine.
const MAX_GROWTH: u32 = 24;

/// The shortest of several times says what the work takes; the others, what disturbed it.
const ROUNDS: usize = 4;

/// What a page is made of: its beginning, its parts by their number, and its end.
type PageClass = (&'static str, &'static str, fn(usize) -> String, &'static str);

const CLASSES: [PageClass; 22] = [
    ("deep nesting", "", |_| "<div>".to_owned(), "text"),
    ("deep nesting that ends", "", |number| format!("<div><b>a{number}</b>"), "</div></div></div>"),
    ("attributes", "<p ", |number| format!("data-a{number}=b "), ">text"),
    ("classes of one element", "<div class='", |number| format!("nav-share{number} "), "'>text"),
    ("one long class", "<div class='author", |_| "-ad-Share_byline".to_owned(), "'>text"),
    ("links", "<p>", |number| format!("<a href=/page/{number}?a=b#c>Page {number}</a> "), ""),
    ("unclosed tags", "", |number| format!("<p>a<b>b<i>c<a href={number}>d"), ""),
    ("stray end tags", "<div><p>", |number| format!("a{number}</section></b></x-y>"), ""),
    (
        "dates",
        "<h1>a</h1>",
        |number| format!("<p>Published March {}, 2021</p>", number % 28 + 1),
        "",
    ),
    ("times", "", |number| format!("<time datetime=x{number}>yesterday</time>"), ""),
    (
        "linked data in many scripts",
        "",
        |number| {
            let data = format!(r#"{{"@type":"NewsArticle","headline":"a{number}"}}"#);
            format!("<script type=application/ld+json>{data}</script>")
        },
        "",
    ),
    (
        "linked data in one script",
        "<script type=application/ld+json>[",
        |number| format!(r#"{{"@type":"Person","@id":"{number}","name":"Ada {number}"}},"#),
        "{}]</script>",
    ),
    ("headings", "<title>a - b</title>", |number| format!("<h2>Heading {}</h2>", number % 7), ""),
    (
        "repeated blocks",
        "",
        |number| {
            format!("<div><p>{} words that are repeated</p></div>", "some ".repeat(number % 20))
        },
        "",
    ),
    ("bylines", "<h1>a</h1>", |number| format!("<p class=byline>By Ada Keeper{number}</p>"), ""),
    ("authors of one line", "<a rel=author>", |number| format!("Ada Keeper{number}, "), "</a>"),
    ("metas", "", |number| format!("<meta property=article:author content=a{number}>"), ""),
    ("a title of many parts", "<title>", |number| format!("a{number} | b - "), "</title>"),
    ("cells", "<table>", |number| format!("<tr><td>{number}<td rowspan=9 colspan=9>|"), ""),
    ("nested lists", "", |number| format!("<ul><li>a{number}"), ""),
    ("marks and references", "<p>", |number| format!("*a_{number}* &amp;&eacute;&#{number}; "), ""),
    (
        "words of all kinds",
        "<p>",
        |number| format!("a  b\u{AD}c \u{E9}t\u{E9}{number} \u{8C37} \u{1}"),
        "",
    ),
];

#[derive(Debug, Clone, Copy)]
enum Work {
    Extract,
    Links,
}

impl Work {
    const ALL: [Work; 2] = [Work::Extract, Work::Links];
}

fn page((_, begin, part, end): &PageClass, bytes: usize) -> String {
    let mut html = (*begin).to_owned();
    let mut number = 0;
    while html.len() < bytes {
        html.push_str(&part(number));
        number += 1;
    }
    html.push_str(end);
    html
}

/// The CPU time of this thread: it does not grow with what else the machine does.
fn shortest_time(html: &str, work: Work) -> Duration {
    let url = Url::parse("https://site.test/a/b").unwrap();
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let times = (0..ROUNDS).map(|_| {
        let began = now();
        match work {
            Work::Extract => drop(extract(html, &url)),
            Work::Links => drop(links_within(html, &url, &Limits::NONE)),
        }
        now() - began
    });
    times.min().unwrap()
}

#[test]
fn no_page_takes_more_than_linear_time() {
    for class in &CLASSES {
        let short = page(class, BYTES);
        let long = page(class, BYTES * FACTOR);
        for work in Work::ALL {
            let time = shortest_time(&short, work);
            let longer_time = shortest_time(&long, work);
            let name = class.0;
            assert!(longer_time < time * MAX_GROWTH, "{name}, {work:?}: {time:?}, {longer_time:?}");
        }
    }
}

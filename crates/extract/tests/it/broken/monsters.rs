//! One thing over and over.

/// The largest page that is made, and what is enough to see that it is read in bounds.
pub(crate) const LARGE_BYTES: usize = 50 << 20;
pub(crate) const SMALL_BYTES: usize = 200_000;

/// As long as a page may be.
const LONG: [&str; 10] = [
    "<p>",
    "<div>",
    "<a href=x>",
    "<li>",
    "<td>",
    "<br>",
    "<span class=nav>",
    "<p>a</p>",
    "\u{0}",
    "a ",
];

/// As deep as a page may be: 100,000 elements within each other.
const DEEP: [&str; 12] = [
    "<div>",
    "<svg>",
    "<svg><g>",
    "<b>",
    "<table><tr><td>",
    "<ul><li>",
    "<blockquote>",
    "<x-y>",
    "<time>",
    "<h1>",
    "<a rel=author>",
    "<div itemprop=articleBody>",
];
const DEPTH: usize = 100_000;

/// What a careless reader goes back over, each half a million times.
const TANGLED: [&str; 20] = [
    "&",
    "<",
    "<!--",
    "<!",
    "<script>",
    "<a b='",
    "<a b=\"c\" ",
    "</p>",
    "a=b ",
    "<time>1<br>",
    "&#",
    "</",
    "<meta name=date content=1>",
    "<title>",
    "*",
    "`",
    "[",
    "<code>`</code>",
    "<a =\"><b\" b=",
    "\n> ",
];
const TIMES: usize = 500_000;

/// Each with a name, no larger than this.
pub(crate) fn all(max_bytes: usize) -> impl Iterator<Item = (String, Vec<u8>)> {
    let long = LONG.map(|part| (part, max_bytes / part.len()));
    let deep = DEEP.map(|part| (part, DEPTH.min(max_bytes / part.len())));
    let tangled = TANGLED.map(|part| (part, TIMES.min(max_bytes / part.len())));
    let repeated = long.into_iter().chain(deep).chain(tangled);
    let repeated = repeated.map(|(part, times)| (part.to_owned(), part.repeat(times).into_bytes()));
    repeated.chain(others(max_bytes))
}

fn others(max_bytes: usize) -> impl Iterator<Item = (String, Vec<u8>)> {
    let times = max_bytes.min(4 << 20) / 10;
    let within = |before: &str, part: &str, after: &str| {
        format!("{before}{}{after}", part.repeat(times)).into_bytes()
    };
    let data = r"{&quot;a&quot;:&quot;\u003c/p\u003e&quot;},";
    let binary = (0..max_bytes).map(|at| (at * 31 % 251) as u8).collect();
    let words = "Bees and <b>wasps</b> &eacute; ".repeat(max_bytes / 40).into_bytes();
    let utf_16 = "<p>a".repeat(max_bytes / 8).encode_utf16().flat_map(u16::to_be_bytes).collect();
    [
        ("attributes", within("<div ", "data-a=b ", ">text")),
        ("one class", within("<div class='", "nav-share ", "'>text")),
        ("a title", within("<title>", "a | ", "</title>")),
        ("linked data", within("<script type=application/ld+json>", "{\"a\":[", "")),
        ("carried data", within("<div data-a=\"[", data, "\">")),
        ("carried strings in strings", within("<div data-a='[\"[", "\\\"</p>\\\",", "]\"]'>")),
        ("binary", binary),
        ("prose", words),
        ("UTF-16", utf_16),
    ]
    .map(|(name, body)| (name.to_owned(), body))
    .into_iter()
}

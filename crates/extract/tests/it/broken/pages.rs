//! Whole pages, one of each kind that the extractor tells apart.

const SENTENCE: &str =
    "The bees came back on the first warm day of March, as they have for sixty years.";

/// Each with a name.
pub(crate) fn all() -> Vec<(&'static str, String)> {
    vec![
        ("article", article()),
        ("forum", forum()),
        ("shop", shop()),
        ("tables", tables()),
        ("outline", outline()),
        ("carried", carried()),
        ("scripts", scripts()),
        ("Japanese", japanese()),
    ]
}

fn paragraphs(count: usize) -> String {
    let paragraph = |number| format!("<p>{SENTENCE} This was {number} &amp; <b>more</b>.</p>\n");
    (0..count).map(paragraph).collect()
}

fn article() -> String {
    format!(
        r#"<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Bees | The Hive</title>
        <meta property="og:title" content="Bees"><link rel="canonical" href="/bees"><base href="/x/">
        <script type="application/ld+json">{{"@type": "NewsArticle", "datePublished": "2024-05-17",
        "author": [{{"name": "Ada \u00e9"}}], "image": {{"url": "/b.jpg"}}}}</script></head>
        <body class="has-sidebar"><nav><ul><li><a href="/a">Honey</a><li><a href="/b">Wax</a></ul></nav>
        <article><h1>Bees</h1><time datetime="2024-05-17">May 17</time>{}<figure><img src="c.jpg">
        <figcaption>A bee</figcaption></figure><blockquote>{SENTENCE}</blockquote>
        <div class="related"><a href="/d">Wasps</a></div></article>
        <div id="comments">{}</div><footer>Copyright</footer></body></html>"#,
        paragraphs(12),
        paragraphs(4)
    )
}

fn forum() -> String {
    let post = |number: usize| {
        format!(
            "<div class=post id=p{number}><span class=author>Ada {number}</span>{}</div>",
            paragraphs(2)
        )
    };
    let posts: String = (0..15).map(post).collect();
    format!("<title>A question</title><h1>A question</h1><main>{posts}</main>")
}

fn shop() -> String {
    let item = |number: usize| {
        format!(
            "<li><a href='/p/{number}?a=1&b=2'><img data-src=/i.jpg alt=Jar> Jar</a> {number}.99 €"
        )
    };
    let items: String = (0..80).map(item).collect();
    format!(
        "<body><header>Shop</header><form><select><option>Big<option>Small</select></form><ul>{items}</ul>"
    )
}

fn tables() -> String {
    let row = "<tr><th scope=row>a &amp; b<td>1<td class=x><a href='/y?z=1'>c</a><table><tr><td>d</table>";
    format!("<table><caption>T</caption><thead>{row}</thead><tbody>{}</table>", row.repeat(60))
}

fn outline() -> String {
    let part = "<ul><li>a<ol start=3><li>b<dl><dt>c<dd>d<pre><code>e\n  f</code></pre></dl></ol></ul><hr><h2>g</h2>";
    format!("<div role=main>{}</div>", part.repeat(40))
}

fn carried() -> String {
    let posts = r"{&quot;posts&quot;:[{&quot;html&quot;:&quot;\u003cp\u003eBees \\ \u0026amp; more\u003c/p\u003e&quot;},";
    format!("<title>T</title><div id=app data-page=\"{}]}}\"></div>", posts.repeat(60))
}

fn scripts() -> String {
    let part = "<script>if (a < b) { c('</p>') }</script><style>p > a { }</style><svg><path d='M0'/></svg>\
        <noscript><img src=x></noscript><template><p>t</p></template><!-- <p>no</p> --><p>yes</p>";
    part.repeat(60)
}

fn japanese() -> String {
    let text = "<p>蜂は三月の最初の暖かい日に戻ってきた。六十年間ずっとそうしてきたように。</p>";
    format!(
        "<meta charset=shift_jis><title>蜂 - 巣</title><h1>蜂</h1>2024年5月17日{}",
        text.repeat(20)
    )
}

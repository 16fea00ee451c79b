//! Small pages of our own making, through the public door.

use fetchwell_extract::{
    Article, Limits, declared_url_within, extract, extract_text, extract_within, links_within,
};
use url::Url;

fn article(html: &str) -> Article {
    extract(html, &Url::parse("https://site.test/news/one").unwrap())
}

fn check_markdown(html: &str, want: &str) {
    assert_eq!(article(html).markdown, want, "{html}");
}

const LEAD: &str =
    "The bees came back on the first warm day of March, as they have for sixty years.";

fn page() -> String {
    let story = "The keeper counted them twice and was content with what she saw. ".repeat(6);
    format!(
        r#"<!DOCTYPE html><html lang="en-GB"><head>
        <meta charset="utf-8"><title>Bees are back &amp; well | The Hive</title>
        <meta property="og:site_name" content="The Hive">
        <meta property="og:image" content="/img/bee.jpg">
        <meta name="author" content="Ada Keeper">
        <meta property="article:published_time" content="2024-03-02T08:00:00Z">
        <link rel="canonical" href="../news/bees">
        <script>var text = "<p>not this</p>";</script><style>p {{ color: red }}</style>
        </head><body>
        <header><h2>The Hive</h2><a href="/">Home</a></header>
        <nav><ul><li><a href="/a">Honey</a><li><a href="/b">Wax</a></ul></nav>
        <article><h1>Bees are back &amp; well</h1>
        <p>By the river</p><p>{LEAD}</p><p>{story}</p>
        <div class="social-share"><a href="/share">Share this</a></div>
        <noscript>Turn it on</noscript>
        <ul class="related-links"><li><a href="/c">Wasps</a></ul>
        </article><aside>Buy our honey</aside><footer>Copyright</footer></body></html>"#
    )
}

#[test]
fn a_whole_article() {
    let got = article(&page());
    assert_eq!(got.title, "Bees are back & well");
    assert_eq!(got.abstract_text, LEAD);
    assert_eq!(got.image.as_deref(), Some("https://site.test/img/bee.jpg"));
    assert_eq!(got.lang.as_deref(), Some("en-GB"));
    assert_eq!(got.canonical.as_deref(), Some("https://site.test/news/bees"));
    assert_eq!(got.author.as_deref(), Some("Ada Keeper"));
    assert_eq!(got.published.as_deref(), Some("2024-03-02T08:00:00Z"));
    assert!(got.text.starts_with("By the river\n\nThe bees came"), "{}", got.text);
    assert!(got.text.ends_with("content with what she saw."), "{}", got.text);
    assert!(got.markdown.starts_with("# Bees are back & well\n\nBy the river\n\nThe bees"));
}

#[test]
fn a_page_without_structure_is_all_content() {
    let got = article("<title>Note</title>One line<br>and another<br><br>A new block");
    assert_eq!(got.text, "One line\nand another\n\nA new block");
    assert_eq!(got.title, "Note");
    assert_eq!(got.lang, None);
    assert_eq!(article("").text, "");
}

#[test]
fn a_page_that_stands_in_a_form_is_kept() {
    let story = paragraphs("story", 2);
    let html = format!("<form><div id=sidebar>{story}</div></form><footer>x</footer>");
    let got = article(&html).text;
    assert!(got.starts_with(LEAD) && got.ends_with("story number 1."), "{got}");
}

#[test]
fn white_space_is_folded_but_in_preformatted_text() {
    let got =
        article("<p> a\n\t b&nbsp;c<b> d</b>e </p><pre>x\n  y</pre><table><tr><td>1<td>2</table>");
    assert_eq!(got.text, "a b c de\n\nx\n  y\n\n1 2");
}

#[test]
fn links_and_images_become_absolute() {
    check_markdown(
        r#"<p>See <a href="../x?a=1&amp;b=2"> this </a>!<a href="javascript:alert(1)">no</a>
        <a href="/w_(x)"><img src="i.png" alt="an [image]"></a><img src="data:image/gif;base64,R0"></p>"#,
        "See [this](https://site.test/x?a=1&b=2) !no \
         [![an \\[image\\]](https://site.test/news/i.png)](<https://site.test/w_(x)>)",
    );
    let html = r#"<base href="https://cdn.test/a/"><p>words <a href="b">b</a> and more words</p>"#;
    check_markdown(html, "words [b](https://cdn.test/a/b) and more words");
}

#[test]
fn emphasis_touches_its_words_and_ends_with_its_block() {
    check_markdown("<p>a<b> bold </b>c <i></i><em>d</em>", "a **bold** c *d*");
    check_markdown(
        "<b><p>one</p><p>two <strong>three</strong></p></b>",
        "**one**\n\n**two three**",
    );
    check_markdown("<p>use <code>a*b`</code> now", "use `` a*b` `` now");
}

#[test]
fn lists_nest() {
    check_markdown(
        "<p>x</p><ul><li>a<ol start=3><li>b<li><p>c</p><p>d</p></ol><li>e</ul><p>y",
        "x\n\n- a\n  3. b\n  4. c\n\n     d\n- e\n\ny",
    );
}

#[test]
fn quotes_code_headings_and_rules() {
    check_markdown(
        "<h2>A <br>title</h2><blockquote><p>q1</p><ul><li>q2</ul></blockquote><hr>\
         <pre><code>if a &lt; b {\n  *x\n}</code></pre>",
        "## A title\n\n> q1\n>\n> - q2\n\n---\n\n```\nif a < b {\n  *x\n}\n```",
    );
}

#[test]
fn tables_of_data_have_pipes_and_tables_of_layout_have_not() {
    check_markdown(
        "<table><caption>Cap</caption><tr><th>k<th>v|w<tr><td><p>1</p><p>2</p><td><b>3</b></table>",
        "Cap\n\n| k | v\\|w |\n| --- | --- |\n| 1 2 | **3** |",
    );
    check_markdown("<table><tr><td><h3>t</h3>a<td>b</table>", "### t\n\na\n\nb");
}

#[test]
fn cells_that_span_keep_the_others_under_their_headers() {
    check_markdown(
        "<table><tr><th rowspan=2>who<th colspan=2>hives<th>year<tr><th>east<th>west\
         <tr><td>Ada<td>1<td rowspan='2'>2<td>1999<tr><td>Ben<td>3<td>2001<tr><td>Cleo<td>4<td>5</table>",
        "| who | hives | | year |\n| --- | --- | --- | --- |\n| | east | west |\n| Ada | 1 | 2 | 1999 |\n\
         | Ben | 3 | | 2001 |\n| Cleo | 4 | 5 |",
    );
    // Not a number, none at all, and more than the table has.
    let got =
        article("<table><tr><td colspan=x>a<td rowspan=0>b<tr><td>c<td colspan=999>d</table>");
    let empty = "| ".repeat(14);
    let rows = format!("| a | b {empty}|\n{}|\n| c | d {empty}|", "| --- ".repeat(16));
    assert_eq!(got.markdown, rows);
}

#[test]
fn no_raw_html_comes_through() {
    let got = article("<p>&lt;script&gt;alert(1)&lt;/script&gt; &amp;lt; <x-y>z</x-y> # 1</p>");
    assert_eq!(got.markdown, r"\<script>alert(1)\</script> \&lt; z # 1");
    assert_eq!(got.text, "<script>alert(1)</script> &lt; z # 1");
}

/// Paragraphs that are long enough to count, each with a word of its own.
fn paragraphs(word: &str, count: usize) -> String {
    let paragraph = |number: usize| format!("<p>{LEAD} This is {word} number {number}.</p>");
    (0..count).map(paragraph).collect()
}

#[test]
fn title_and_text_alone_are_the_same() {
    let url = Url::parse("https://site.test/news/one").unwrap();
    let whole = extract(&page(), &url);
    let part = extract_text(&page(), &url);
    assert_eq!((part.title, part.text), (whole.title, whole.text));
}

#[test]
fn comments_are_noise_beside_an_article_and_the_content_of_a_forum() {
    let html = format!(
        "<div class=post-content>{}</div><div id=comments>{}</div>",
        paragraphs("story", 6),
        paragraphs("remark", 3)
    );
    let at = |url: &str| extract(&html, &Url::parse(url).unwrap()).text;
    let article = at("https://site.test/2024/05/17/bees");
    assert!(article.contains("story number 3") && !article.contains("remark"), "{article}");
    let forum = at("https://site.test/threads/bees.17/");
    assert!(forum.contains("story number 3") && forum.contains("remark number 2"), "{forum}");
}

#[test]
fn a_headline_with_a_permalink_mark_is_not_part_of_the_text() {
    let html = format!(
        "<title>Bees at last</title><article><h1>Bees at last<a href=#x>¶</a></h1>{}</article>",
        paragraphs("story", 4)
    );
    let got = article(&html);
    assert_eq!(got.title, "Bees at last");
    assert!(!got.text.contains("Bees at last"), "{}", got.text);
}

#[test]
fn the_article_with_the_headline_is_the_article() {
    let teasers = format!("<article>{}</article>", paragraphs("teaser", 3)).repeat(2);
    let html = format!(
        "<meta property=og:type content=article>{teasers}<article><h1>Bees</h1>{}</article>{teasers}",
        paragraphs("story", 4)
    );
    let got = article(&html).text;
    assert!(got.contains("story number 3") && !got.contains("teaser"), "{got}");
}

#[test]
fn noscript_counts_on_a_bare_page_unless_it_is_excluded() {
    let noscript = format!("<noscript><h1>x</h1>{}</noscript>", paragraphs("post", 9));
    let bare = format!("<title>x</title><div id=app></div>{noscript}");
    let got = article(&bare).text;
    assert!(got.contains("post number 0") && got.contains("post number 8"), "{got}");
    let url = Url::parse("https://site.test/").unwrap();
    let limits = Limits { with_noscript: false, ..Limits::NONE };
    assert_eq!(extract_within(&bare, &url, &limits).unwrap().text, "");
    // A page that asks to turn scripts on.
    let please = "<noscript><p>Please turn on JavaScript to use this site.</noscript>".repeat(3);
    assert_eq!(article(&please).text, "");
    let got = article(&format!("{}{noscript}", paragraphs("story", 4))).text;
    assert!(got.contains("story number 3") && !got.contains("post"), "{got}");
}

/// Navigation consists of links; what has prose is something else, whatever its name.
#[test]
fn a_name_of_navigation_does_not_erase_prose() {
    for name in ["lm_navSource", "faq_tabs-menu", "accordion-dropdown", "paginated-body"] {
        let html = format!(
            "<main><div class={name}>{}</div><div class={name}>{}</div>\
             <div class={name}><a href=/a>Home</a> <a href=/b>Shop now</a></div></main>",
            paragraphs("one", 3),
            paragraphs("two", 3)
        );
        let got = article(&html).text;
        assert!(got.contains("one number 2") && got.contains("two number 2"), "{name}: {got}");
        assert!(!got.contains("Shop now"), "{name}: {got}");
    }
}

/// A shop has hardly any prose.
#[test]
fn a_name_of_navigation_does_not_erase_most_of_a_page() {
    let product = |number| format!("<li><a href=/{number}>Hive {number}</a> <b>{number}0 €</b>");
    let products: String = (0..30).map(product).collect();
    let rest = "<p>Shipping and returns are free.</p>".repeat(20);
    let menu = "<div class=menu><a href=/a>Home</a> <a href=/b>Shop now</a></div>";
    let got = article(&format!("{menu}<div class=menu-grid><ul>{products}</ul></div>{rest}")).text;
    assert!(got.contains("Hive 29") && !got.contains("Shop now"), "{got}");
}

#[test]
fn hidden_tab_panels_of_an_article_are_kept() {
    let panel =
        |name: &str, role: &str| format!("<div {role} hidden>{}</div>", paragraphs(name, 3));
    let html = format!(
        "<article><h1>Hives</h1>{}{}{}</article>",
        paragraphs("story", 4),
        panel("wooden", "role=tabpanel"),
        panel("copy", "")
    );
    let got = article(&html).text;
    assert!(got.contains("wooden number 2") && !got.contains("copy"), "{got}");
}

#[test]
fn a_request_for_consent_is_left_out_unless_it_is_all_there_is() {
    let consent = format!("<div id=onetrust-sdk>{}</div>", paragraphs("cookie", 9));
    let got = article(&format!("<ul><li>Lamps<li>Chairs</ul><p>{LEAD} {LEAD}</p>{consent}")).text;
    assert!(got.contains("Lamps") && !got.contains("cookie"), "{got}");
    let bar = "<div class=cookie-bar>We use cookies.</div>";
    let got = article(&format!("<ul>{}</ul>{bar}", "<li>Lamps<li>Chairs".repeat(9))).text;
    assert!(got.contains("Lamps") && !got.contains("cookies"), "{got}");
    // Unless there is nothing else: then the name misleads.
    assert!(article(&consent).text.contains("cookie number 8"));
}

#[test]
fn what_surrounds_a_product_is_left_out() {
    let product =
        r#"<script type="application/ld+json">{"@type": "Product", "name": "Hive"}</script>"#;
    let shared = "<meta property=og:type content=product>";
    let page = format!(
        "<main>{}<div class=product-reviews>{}</div><div id=shipping-info>{}</div></main>",
        paragraphs("hive", 3),
        paragraphs("review", 9),
        paragraphs("parcel", 1)
    );
    for head in [product, shared] {
        let got = article(&format!("{head}{page}")).text;
        assert!(got.contains("hive number 2") && !got.contains("review"), "{head}: {got}");
        assert!(!got.contains("parcel"), "{head}: {got}");
    }
    // WooCommerce marks products that are shipped.
    let shipped = format!(
        "{product}<div class='product shipping-taxable'>{}</div><div>{}</div>",
        paragraphs("hive", 3),
        paragraphs("wax", 7)
    );
    assert!(article(&shipped).text.contains("hive number 2"));
    // A name does not erase the product itself.
    let named = format!(
        "{product}<main><div class=add-to-cart>{}</div>{}</main>",
        paragraphs("hive", 6),
        paragraphs("wax", 4)
    );
    let got = article(&named).text;
    assert!(got.contains("hive number 5") && got.contains("wax number 3"), "{got}");
    // Elsewhere they may be the content, and a list of products is not a product.
    let list = r#"<script type="application/ld+json">{"@type": "ItemList", "itemListElement":
        [{"@type": "Product"}, {"@type": "Product"}]}</script>"#;
    for head in ["", list] {
        assert!(article(&format!("{head}{page}")).text.contains("review number 8"), "{head}");
    }
}

#[test]
fn a_forum_keeps_replies_but_neither_profiles_nor_remarks_on_answers() {
    let post = |name: &str| {
        format!(
            "<div><dl class=postprofile><dt>Ada<dd>Posts: 138</dl>{}<div class=comment>{}</div></div>",
            paragraphs(name, 3),
            paragraphs("remark", 1)
        )
    };
    let html = format!("{}{}", post("first"), post("second"));
    let at = |url: &str| extract(&html, &Url::parse(url).unwrap()).text;
    let forum = at("https://site.test/forum/bees");
    assert!(forum.contains("second number 2") && forum.contains("remark"), "{forum}");
    assert!(!forum.contains("Posts: 138"), "{forum}");
    let answers = at("https://site.test/questions/17/bees");
    assert!(answers.contains("second number 2") && !answers.contains("remark"), "{answers}");
}

#[test]
fn what_a_bare_page_carries_as_data_is_its_text() {
    let posts: String = (0..9)
        .map(|number| {
            let user = if number == 0 { "null".to_owned() } else { format!("\"user{number}\"") };
            format!(r#"{{"username": {user}, "html": "\u003cp>{LEAD} Post {number}.\u003c/p>"}},"#)
        })
        .collect();
    let plain = posts.replace('"', "&quot;");
    // Some put JSON into a string of JSON.
    let nested = posts.replace('\\', r"\\").replace('"', "\\&quot;");
    for data in [format!("[{plain}]"), format!("{{&quot;topic&quot;: &quot;[{nested}]&quot;}}")] {
        let app = format!("<title>Bees</title><div data-page=\"{data}\"></div>");
        let got = article(&app);
        assert_eq!(got.author.as_deref(), Some("user1"));
        let got = got.text;
        assert!(got.starts_with(LEAD) && got.ends_with("Post 8."), "{got}");
        assert_eq!(got.matches("Post").count(), 9, "{got}");
        let got = article(&format!("{app}{}", paragraphs("story", 5))).text;
        assert!(got.contains("story number 4") && !got.contains("Post"), "{got}");
    }
}

#[test]
fn what_is_hidden_is_left_out_unless_it_is_folded_away() {
    let questions = |count: usize| {
        let question = |number| {
            format!("<div><h3>{number}?</h3><div hidden>{}</div></div>", paragraphs("answer", 3))
        };
        (0..count).map(question).collect::<String>()
    };
    let secret = "<p style='display: none'>secret</p>";
    let got = article(&format!("<main>{secret}{}</main>", questions(5))).text;
    assert!(got.contains("answer number 1") && !got.contains("secret"), "{got}");
    // Beside an article it is a copy, a form or a window, be it as long as the article.
    let story = paragraphs("story", 4);
    let got = article(&format!("<article>{story}</article><div hidden>{story}</div>{secret}")).text;
    assert_eq!(got.matches("story number 3").count(), 1, "{got}");
    // Some articles are shown by a script.
    let got = article(&format!("<article style='display:none'>{story}</article>{secret}")).text;
    assert!(got.contains("story number 3") && !got.contains("secret"), "{got}");
}

#[test]
fn more_comments_than_article_do_not_make_a_page_another() {
    let html = format!(
        "<article>{}</article><div id=comments>{}</div>",
        paragraphs("story", 4),
        paragraphs("remark", 30)
    );
    let url = Url::parse("https://site.test/2024/05/17/an-open-thread").unwrap();
    let got = extract(&html, &url).text;
    assert!(got.contains("story number 3") && !got.contains("remark"), "{got}");
}

#[test]
fn what_holds_the_stated_body_is_not_left_out_by_name() {
    let html = format!(
        "<div class=breaking-news><div itemprop=articleBody>{}</div></div><div>{}</div>",
        paragraphs("story", 4),
        paragraphs("other", 8)
    );
    let got = article(&html).text;
    assert!(got.contains("story number 2") && !got.contains("other"), "{got}");
}

#[test]
fn a_word_within_a_made_up_name_means_nothing() {
    let part = |number: usize| format!("<div class=jXK9ad>{}</div>", paragraphs("part", number));
    let html = format!("{}{}{}", part(2), part(1), part(3));
    assert_eq!(article(&html).text.matches("part number").count(), 6);
}

#[test]
fn a_page_of_small_parts_is_what_its_main_says() {
    let menu: String = (0..40).map(|number| format!("<div>Menu {number}</div>")).collect();
    let offers: String = (0..90).map(|number| format!("<li>Offer {number}</li>")).collect();
    let html = format!("{menu}<main><p>{LEAD} {LEAD}</p><ul>{offers}</ul></main>");
    let got = article(&html).text;
    assert!(got.starts_with(LEAD) && got.ends_with("Offer 89") && got.contains("Offer 7"), "{got}");
}

#[test]
fn a_name_does_not_cost_the_whole_page() {
    let html = format!("<div class=footer><div class=modal>{}</div></div>", paragraphs("story", 5));
    assert!(article(&html).text.contains("story number 4"));
}

#[test]
fn an_item_that_is_a_link_stays_in_its_list() {
    let html = format!(
        "<article>{}<ul><li>Wax for candles and for the floor<li><a href=/b>Honey</a><li>Bees, of \
         course, and what they need</ul></article>",
        paragraphs("story", 4)
    );
    let got = article(&html).text;
    assert!(got.contains("floor\n\nHoney\n\nBees"), "{got}");
}

#[test]
fn lists_of_links_are_left_out_of_articles() {
    let html = format!(
        "<article>{}<ul><li><a href=/a>Wasps are next</a><li><a href=/b>Honey</a></ul>\
         <ul><li>Wax, <a href=/c>a lot</a> of it<li>Honey</ul></article>",
        paragraphs("story", 4)
    );
    let got = article(&html).text;
    assert!(got.ends_with("Wax, a lot of it\n\nHoney"), "{got}");
}

#[test]
fn a_list_of_links_stays_if_the_text_announces_it_and_goes_on() {
    let links = "<ul><li><a href=/a>Wasps are next</a><li><a href=/b>Honey</a></ul>";
    let contents = "<ul><li><a href=#a>First part</a><li><a href=#b>Second part</a></ul>";
    let story = paragraphs("story", 4);
    let html = format!(
        "<article><p>In this text:</p>{contents}{story}<p>Two reports came in:</p>{links}{story}\
         <p>Read on:</p>{links}</article>"
    );
    let got = article(&html).text;
    assert!(got.contains("came in:\n\nWasps are next\n\nHoney\n\nThe bees"), "{got}");
    assert!(!got.contains("First part") && got.ends_with("Read on:"), "{got}");
}

#[test]
fn an_item_stays_in_its_list_if_its_link_is_a_paragraph() {
    let html = format!(
        "<article>{}<ul><li><p>Wax for candles and for the floor</p><li> <p><a href=/b>Honey</a></p>\
         <li><p>Bees, of course, and what they need</p></ul></article>",
        paragraphs("story", 4)
    );
    let got = article(&html).text;
    assert!(got.contains("floor\n\nHoney\n\nBees"), "{got}");
}

#[test]
fn a_box_about_the_author_is_left_out_of_articles() {
    let story = paragraphs("story", 12);
    let life = paragraphs("life", 4);
    for attribute in ["class=post-author", "class='authors box'", "id=bio", "itemprop=author"] {
        let html = format!("<article>{story}<div {attribute}>{life}</div></article>");
        let got = article(&html).text;
        assert!(got.ends_with("story number 11."), "{attribute}: {got}");
    }
    // An article about an author is longer.
    let html =
        format!("<article>{story}<div class=author>{}</div></article>", paragraphs("life", 40));
    assert!(article(&html).text.contains("life number 39."));
}

#[test]
fn lines_with_the_date_are_left_out_of_articles() {
    let story = paragraphs("story", 4);
    let html = format!(
        "<article><p>Updated <time>2 March 2024</time></p><p itemprop=datePublished>1 March</p>\
         <p>On <time>2 March 2024</time> the keeper opened the hives, for the first time since \
         October.</p>{story}</article>"
    );
    let got = article(&html).text;
    assert!(got.starts_with("On 2 March 2024 the keeper"), "{got}");
}

#[test]
fn other_posts_are_left_out_of_articles() {
    let story = paragraphs("story", 8);
    let teaser = paragraphs("teaser", 1);
    for name in ["next-prev", "prev-post", "blog-listing-section", "recent posts", "swiper-wrapper"]
    {
        let html = format!("<article>{story}<div class='{name}'>{teaser}</div></article>");
        let got = article(&html).text;
        assert!(got.ends_with("story number 7."), "{name}: {got}");
    }
}

#[test]
fn the_date_comes_from_the_best_place() {
    let linked = r#"<script type="application/ld+json">
        {"@type": "NewsArticle", "datePublished": "2024-05-17T08:00:00Z"}</script>"#;
    let meta = r#"<meta name="pubdate" content="May 18, 2024">"#;
    let time = r#"<time datetime="2024-05-19">last Sunday</time>"#;
    let visible = "<h1>Bees</h1><p>By Ada | 20 May 2024</p>";
    let story = paragraphs("story", 3);
    for (html, want) in [
        (format!("{linked}{meta}{time}{visible}{story}"), "2024-05-17T08:00:00Z"),
        (format!("{meta}{time}{visible}{story}"), "2024-05-18"),
        (format!("{visible}{time}{story}"), "2024-05-19"),
        (format!("{visible}{story}"), "2024-05-20"),
    ] {
        assert_eq!(article(&html).published.as_deref(), Some(want), "{html}");
    }
    let url = Url::parse("https://site.test/2024/05/21/bees").unwrap();
    assert_eq!(extract(&story, &url).published.as_deref(), Some("2024-05-21"));
    assert_eq!(article(&story).published, None);
}

#[test]
fn a_date_shown_by_the_headline_corrects_a_later_stated_one() {
    let stated = "<meta property=article:published_time content=2024-05-21T08:00:00Z>";
    let show = |line: &str| format!("{stated}<h1>Bees</h1>{line}<p>{LEAD}");
    let at = Url::parse("https://site.test/bees").unwrap();
    for (line, want) in [
        ("<div>May 17, 2024</div>", "2024-05-17"),
        ("<div>By Ada | Published 17 May 2024</div><div>Updated May 21, 2024</div>", "2024-05-17"),
        ("<div>Updated May 18, 2024</div><div>May 17, 2024</div>", "2024-05-17"),
        // The stated one is as early or earlier, and has the time.
        ("<div>May 21, 2024</div>", "2024-05-21T08:00:00Z"),
        ("<div>May 23, 2024</div>", "2024-05-21T08:00:00Z"),
        // Other dates.
        ("<div>Last updated on May 17, 2024</div>", "2024-05-21T08:00:00Z"),
        ("<div>Last edited</div><div>May 17, 2024</div>", "2024-05-21T08:00:00Z"),
        ("<div>Joined: May 17, 2014</div>", "2024-05-21T08:00:00Z"),
    ] {
        let html = show(line);
        assert_eq!(extract(&html, &at).published.as_deref(), Some(want), "{html}");
    }
    let confirmed = Url::parse("https://site.test/2024/05/21/bees").unwrap();
    let got = extract(&show("<div>May 17, 2024</div>"), &confirmed).published;
    assert_eq!(got.as_deref(), Some("2024-05-21T08:00:00Z"));
    let far = format!("<p>{}</p><div>May 17, 2024</div>", LEAD.repeat(9));
    let got = extract(&show(&far), &at).published;
    assert_eq!(got.as_deref(), Some("2024-05-21T08:00:00Z"));
}

#[test]
fn the_date_line_belongs_to_the_headline() {
    let at = Url::parse("https://site.test/bees").unwrap();
    let filler = format!("<p>{}</p>", LEAD.repeat(20));
    for (html, want) in [
        // The forum's name is the `h1`; its announcements follow.
        (
            "<title>Bees are back</title><h1>Hive forum</h1><p>Sun Jan 3, 2021</p>\
             <h2>Bees are back</h2><p>by ada » Fri May 17, 2024 8:30</p>"
                .to_owned(),
            "2024-05-17",
        ),
        // The current time is above the headline.
        (
            "<time datetime=2026-01-01>now</time><h1>Bees</h1><p>May 17, 2024</p>".to_owned(),
            "2024-05-17",
        ),
        ("<time datetime=2024-05-17>then</time><h1>Bees</h1>".to_owned(), "2024-05-17"),
        ("<h1>Bees</h1><p>Joined: Jan 3, 2021</p><p>May 17, 2024</p>".to_owned(), "2024-05-17"),
        ("<h1>Bees</h1><p>Updated: May 17, 2024</p>".to_owned(), "2024-05-17"),
        // The indentation of the source does not make the line long.
        (
            format!("<h1>Bees</h1><p>by{0}<i>Ada</i>{0}on{0}<i>May 17, 2024</i>", " ".repeat(99)),
            "2024-05-17",
        ),
        ("<meta name=cms.date content=2024-05-17><h1>Bees</h1>".to_owned(), "2024-05-17"),
    ] {
        assert_eq!(extract(&html, &at).published.as_deref(), Some(want), "{html}");
    }
    for other in [
        format!("<h1>Bees</h1>{filler}<p>Next meeting: May 17, 2024</p>"),
        format!("<h1>Bees</h1><p>{}</p><p>Updated May 17, 2024</p>", LEAD.repeat(9)),
        "<h1>Bees</h1><time itemprop=dateModified datetime=2024-05-17>now</time>".to_owned(),
    ] {
        assert_eq!(extract(&other, &at).published, None, "{other}");
    }
}

#[test]
fn the_date_is_rfc_3339_or_a_plain_date() {
    let story = paragraphs("story", 3);
    for (stated, want) in [
        ("2024-05-17T08:00:00+02:00", "2024-05-17T08:00:00+02:00"),
        ("2024-05-17T08:00:00-0330", "2024-05-17T08:00:00-03:30"),
        ("2024-05-17 08:00+00:00", "2024-05-17T08:00:00Z"),
        ("2024-05-17T08:00:00.25Z", "2024-05-17T08:00:00.25Z"),
        // Without a zone, the time says little.
        ("2024-05-17T08:00:00", "2024-05-17"),
        ("2024-05-17T25:00:00Z", "2024-05-17"),
        ("2024-05-17T08:00:00+25:00", "2024-05-17"),
        ("2024-05-17 by Ada", "2024-05-17"),
        ("17 May 2024 08:00 GMT", "2024-05-17"),
    ] {
        let html = format!("<meta name=pubdate content='{stated}'>{story}");
        assert_eq!(article(&html).published.as_deref(), Some(want), "{stated}");
    }
}

#[test]
fn the_time_of_an_archives_capture_is_not_the_date() {
    let story = paragraphs("story", 3);
    for (url, want) in [
        ("https://archive.test/web/20200102030405/https://site.test/bees", None),
        ("https://archive.test/web/20200102030405id_/http:/site.test/bees", None),
        (
            "https://archive.test/20200102030405/https://site.test/2019/12/31/bees",
            Some("2019-12-31"),
        ),
    ] {
        let got = extract(&story, &Url::parse(url).unwrap()).published;
        assert_eq!(got.as_deref(), want, "{url}");
    }
}

#[test]
fn the_folder_of_a_file_says_nothing_about_its_page() {
    let url = Url::parse("file:///backup/2024-05-17/forum/questions/a.html").unwrap();
    let html = format!(
        "<div class=post-content>{}</div><div id=comments>{}</div>",
        paragraphs("story", 6),
        paragraphs("remark", 3)
    );
    let got = extract(&html, &url);
    assert_eq!(got.published, None);
    assert!(!got.text.contains("remark"), "{}", got.text);
}

#[test]
fn the_description_comes_from_the_head() {
    let story = paragraphs("story", 3);
    let shared = "<meta property=og:description content='  Shared&amp;  said '>";
    let own = "<meta name=description content=Own>";
    let linked = r#"<script type="application/ld+json">[{"@type": "WebSite", "description": "Site"},
        {"@type": "Article", "description": "Linked"}]</script>"#;
    for (head, want) in [
        (format!("{linked}{own}{shared}"), Some("Shared& said")),
        (format!("{linked}{own}"), Some("Own")),
        (linked.to_owned(), Some("Linked")),
        (format!("<meta name=description content='{}'>", "x".repeat(6_000)), None),
    ] {
        assert_eq!(article(&format!("{head}{story}")).description.as_deref(), want, "{head}");
    }
}

#[test]
fn links_are_listed_once_and_in_order() {
    let html =
        "<base href=/base/><nav><a href=b#top>b</a> <a href='https://other.test/'>o</a></nav>
        <p>a <a href=b>again</a> <a href=mailto:ada@site.test>m</a> <a href='//cdn.test/x?y=1'>c</a>
        <a>none</a> <a href=''>empty</a>";
    let at = Url::parse("https://site.test/a").unwrap();
    let got = links_within(html, &at, &Limits::NONE).unwrap();
    let got: Vec<&str> = got.iter().map(Url::as_str).collect();
    let want = ["https://site.test/base/b", "https://other.test/", "https://cdn.test/x?y=1"];
    assert_eq!(got, want);
    let many: String = (0..20_000).map(|number| format!("<a href={number}>x</a>")).collect();
    assert_eq!(links_within(&many, &at, &Limits::NONE).unwrap().len(), 10_000);
}

#[test]
fn a_date_is_told_from_its_neighbours() {
    let story = paragraphs("story", 3);
    let over = "<p>Today is 3 June 2024, and this is what else we have for all who keep bees at \
        home or abroad, in hives of wood or straw</p><div>May 17, 2024<span>Ada</span></div>";
    let changed = "<time itemprop=dateModified datetime=2024-06-01>now</time>";
    let made = "<time datetime=2024-06-02>x</time><i itemprop=dateCreated content=2024-05-17>y</i>";
    let meta = "<meta name=pubdate content=2024-05-18T01:00:00Z>";
    for (before, path) in [(over, "bees"), (made, "bees"), (meta, "2024/05/17/bees")] {
        let html = format!("{before}<h1>Bees</h1>{changed}{story}");
        let url = Url::parse(&format!("https://site.test/{path}")).unwrap();
        assert_eq!(extract(&html, &url).published.as_deref(), Some("2024-05-17"), "{html}");
    }
}

#[test]
fn linked_data_names_authors_image_and_site() {
    let html = format!(
        r#"<script type='application/ld+json'>{{"@graph": [{{"@type": "BlogPosting",
        "author": [{{"name": "Ada Keeper"}}, {{"name": "Bo Drone"}}], "image": {{"url": "/bee.jpg"}},
        "publisher": {{"name": "The Hive"}}}}]}}</script>{}"#,
        paragraphs("story", 3)
    );
    let got = article(&html);
    assert_eq!(got.author.as_deref(), Some("Ada Keeper, Bo Drone"));
    assert_eq!(got.image.as_deref(), Some("https://site.test/bee.jpg"));
    assert_eq!(got.site_name.as_deref(), Some("The Hive"));
    assert_eq!(got.lang.as_deref(), Some("en"));
}

/// The authors of a page with this markup before its text. Its site is `site.test`, named "The Hive".
fn authors(markup: &str) -> Vec<String> {
    let html = format!(
        "<meta property=og:site_name content='The Hive'>{markup}{}",
        paragraphs("story", 4)
    );
    let got = article(&html);
    let joined = (!got.authors.is_empty()).then(|| got.authors.join(", "));
    assert_eq!(got.author, joined);
    got.authors
}

#[test]
fn authors_are_found_where_pages_name_them() {
    let linked =
        |json: &str| format!("<script type='application/ld+json'>{json}</script><h1>Bees</h1>");
    for markup in [
        linked(r#"{"@type": "Article", "author": {"@type": "Person", "name": "Ada Keeper"}}"#),
        linked(r#"{"@type": "Article", "author": "Ada Keeper"}"#),
        // The author is described elsewhere.
        linked(
            r##"{"@graph": [{"@type": "Article", "author": {"@id": "#ada"}},
                {"@type": "Person", "@id": "#ada", "name": "Ada Keeper"}]}"##,
        ),
        // Of a question and its answers, the one who asked.
        linked(
            r#"{"@type": "Question", "author": {"name": "Ada Keeper"},
                "acceptedAnswer": {"@type": "Answer", "author": {"name": "Bo Drone"}}}"#,
        ),
        "<meta name=author content='By Ada Keeper, The Hive'>".into(),
        "<h1>Bees</h1><a rel=author href=/x>Ada Keeper</a>".into(),
        "<h1>Bees</h1><div itemprop=author><b itemprop=name>Ada Keeper</b> 12 stars</div>".into(),
        "<h1>Bees</h1><p class=post-author>By <b>Ada Keeper</b></p>".into(),
        "<h1>Bees</h1><span class=block_authorName__x1>Ada Keeper</span>".into(),
        "<h1>Bees</h1><p><a href=/authors/ada/>Ada Keeper</a>".into(),
        "<h1>Bees</h1><p>By Ada Keeper • March 12, 2025</p>".into(),
        "<h1>Bees</h1><div>Written by</div><div>Ada Keeper</div>".into(),
        "<h1>Bees</h1><div><span>By</span><span>Ada Keeper</span></div>".into(),
        "<h1>Bees</h1><p>&#8203;</p><p>By Ada Keeper</p>".into(),
        linked(r#"{"@type": "Recipe", "author": "Ada Keeper"}"#),
        linked(
            r#"{"@type": "https://schema.org/Article", "author":
                {"@type": ["Thing", "Person"], "name": "Ada Keeper"}}"#,
        ),
    ] {
        assert_eq!(authors(&markup), ["Ada Keeper"], "{markup}");
    }
    let two =
        "<h1>Bees</h1><p class=byline>By Ada Keeper, MD and Bo van der Drone | 3 min read</p>";
    assert_eq!(authors(two), ["Ada Keeper, MD", "Bo van der Drone"]);
}

#[test]
fn neither_an_account_nor_the_site_is_an_author() {
    for markup in [
        "<meta name=twitter:creator content=thehivenews>",
        "<meta name=author content=@ada>",
        "<meta name=author content='https://social.test/ada'>",
        "<meta name=author content='The Hive'>",
        "<script type='application/ld+json'>{\"@type\": \"Article\", \"author\": {\"@type\": \
         \"Organization\", \"name\": \"The Hive\"}}</script>",
        "<h1>Bees</h1><p class=author-bio>Read more</p><a href=/authors/>All authors</a>",
        "<h1>Bees</h1><p>By the river</p><p class=byline>March 12, 2025</p>",
        "<h1>Author Paul Keeper Retires</h1><p>By Monday, the storm had passed.</p>",
        "<h1>By Design Alone</h1><a href=/nfl/team/the-drones>The Drones</a>",
        "<h1>Bees</h1><a rel=author href=/x>View all posts by Ada</a>",
    ] {
        assert_eq!(authors(markup), Vec::<String>::new(), "{markup}");
    }
    // Other sources are used instead.
    let both = "<meta name=author content='The Hive'><h1>Bees</h1><p>By Ada Keeper</p>";
    assert_eq!(authors(both), ["Ada Keeper"]);
}

#[test]
fn a_page_declares_its_own_url_only_if_it_is_absolute() {
    let canonical = r#"<link rel="canonical" href=" https://a.test/one ">"#;
    let shared = r#"<meta property="og:url" content="https://a.test/shared">"#;
    for (head, want) in [
        (canonical.to_owned(), Some("https://a.test/one")),
        (format!("{shared}{canonical}"), Some("https://a.test/one")),
        (format!(r#"<link rel="canonical" href="/one">{shared}"#), Some("https://a.test/shared")),
        (r#"<base href="https://a.test/"><link rel="canonical" href="/one">"#.to_owned(), None),
        (r#"<link rel="canonical" href="javascript:alert(1)">"#.to_owned(), None),
        ("<title>None</title>".to_owned(), None),
    ] {
        let url = declared_url_within(&head, &Limits::NONE).unwrap();
        assert_eq!(url.as_ref().map(Url::as_str), want, "{head}");
    }
}

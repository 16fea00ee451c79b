//! What belongs to the content of a page, and what is left out.

use fetchwell_extract::{Limits, extract, extract_within};
use url::Url;

use super::{LEAD, article, paragraphs};

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
fn the_headline_is_not_part_of_the_text_even_if_the_title_has_only_a_part_of_it() {
    for heading in
        ["Bees at last again - In colour", "Bees at last again<span>Now in colour</span>"]
    {
        let story = paragraphs("story", 2);
        let html = format!(
            "<title>Bees at last again | The Hive</title><article><h1>{heading}</h1>{story}</article>"
        );
        let got = article(&html);
        assert_eq!(got.title, "Bees at last again");
        assert!(got.text.starts_with(LEAD), "{}", got.text);
    }
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

/// One container for everything; three with a third each; one beside comments four times as long.
#[test]
fn no_name_erases_a_page() {
    let holding = |tag: &str, name: &str, inner: &str| {
        format!("<{tag} class='{name}'>{inner}</{tag}><{tag} id='{name}'></{tag}>")
    };
    for name in [
        "Page-Sidebar",
        "page-overlay",
        "section--overlay",
        "gallery-part",
        "post-paywall",
        "pager",
        "story-Ads",
        "paginated-text",
        "related-content",
        "site-footer",
        "comment-text",
        "author-text",
    ] {
        for tag in ["div", "section", "article"] {
            let part = |word: &str| holding(tag, name, &paragraphs(word, 3));
            let siblings = [part("one"), part("two"), part("three")].concat();
            let remarks = paragraphs("remark", 12);
            for page in [
                holding(tag, name, &siblings),
                siblings.clone(),
                format!("<meta property=og:type content=article>{siblings}"),
                format!("<main><h1>Bees</h1>{siblings}</main>"),
            ] {
                let got = article(&page).text;
                for word in ["one number 2", "two number 2", "three number 2"] {
                    assert!(got.contains(word), "{page}: {got}");
                }
            }
            if name != "comment-text" {
                let page = format!("{}<div id=comments>{remarks}</div>", part("one"));
                let got = article(&page).text;
                assert!(got.contains("one number 2"), "{page}: {got}");
            }
        }
    }
}

/// Elements beside the content, and elements that are never content, stay out.
#[test]
fn names_still_drop_elements_if_content_is_left() {
    let posts: String =
        (0..9).map(|_| format!("<div class=comment>{}</div>", paragraphs("post", 3))).collect();
    let html = format!("<h1>Bees</h1>{posts}<div class=sidebar>{}</div>", paragraphs("rule", 4));
    let got = article(&html).text;
    assert!(got.contains("post number 2") && !got.contains("rule"), "{got}");
    let part = format!("<div class=sidebar>{}</div>", paragraphs("aside", 3)).repeat(2);
    let html = format!("<div>{}</div>{part}", paragraphs("story", 3));
    let got = article(&html).text;
    assert!(got.contains("story number 1") && !got.contains("aside"), "{got}");
    let hidden = format!("<div hidden>{}</div>", paragraphs("copy", 1));
    let consent = format!("<div class=cookie-note>{}</div>", paragraphs("cookie", 2));
    let nav = format!("<nav>{}</nav>", paragraphs("menu", 2));
    let parts = format!("<div class=page-overlay>{}</div>", paragraphs("story", 2)).repeat(3);
    let html = format!("<meta property=og:type content=article>{parts}{hidden}{consent}{nav}");
    let got = article(&html).text;
    assert!(got.contains("story number 1"), "{got}");
    for word in ["copy", "cookie", "menu"] {
        assert!(!got.contains(word), "{word}: {got}");
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
fn a_link_in_an_item_or_cell_is_kept() {
    let wax = "Wax for candles and for the floor";
    let bees = "Bees, of course, and what they need";
    let honey = "<a href=/b>Honey</a>";
    let list = |open: &str, close: &str| {
        let item = |inner: &str| format!("<li>{open}{inner}{close}</li>");
        format!("<ul>{}{}{}</ul>", item(wax), item(honey), item(bees))
    };
    let story = paragraphs("story", 4);
    let article_page = |list: &str| format!("<article>{story}{list}</article>");
    let small: String = (0..20).map(|number| format!("<h3>Hive {number}</h3>")).collect();
    let other_page = |list: &str| format!("<main>{small}{list}</main>");
    let lists = [
        list("", ""),
        list("<p>", "</p>"),
        list("<div>", "</div>"),
        list("\n<div>\n<div>", "</div></div>"),
        list("<div><p>", "</p></div>"),
        list("<div><a href=/b><img src=/b.png></a>", "</div>"),
        format!(
            "<dl><dt>For<dd><p>{wax}</p><dt>Sweet<dd><p>{honey}</p><dt>Alive<dd><p>{bees}</p></dl>"
        ),
        format!(
            "<table><tr><th><p><a href=/x>Thing</a></p></th><th>Where</th></tr>\
             <tr><td>{wax}</td><td><p>{honey}</p></td></tr>\
             <tr><td>{bees}</td><td><div><a href=/c>Hive</a></div></td></tr></table>"
        ),
    ];
    for list in lists {
        for page in [article_page(&list), other_page(&list)] {
            let got = article(&page).text;
            let has_thing = got.contains("Thing") || !list.contains("Thing");
            assert!(got.contains("Honey") && got.contains("floor") && has_thing, "{page}: {got}");
        }
    }
    // A link after a list is not in it.
    let got =
        article(&article_page(&format!("<ul><li>{bees}</ul><p><a href=/c>Wasps</a></p>"))).text;
    assert!(!got.contains("Wasps"), "{got}");
    // A list of links in an item is not the item.
    let links = "<ul><li><a href=/c>Wasps are next</a><li><a href=/d>Hornets</a></ul>";
    for inner in [links.to_owned(), format!("<p>{wax}</p><div><a href=/c>Wasps</a></div>")] {
        let got = article(&article_page(&format!("<ul><li>{bees}<li>{inner}</ul>"))).text;
        assert!(!got.contains("Wasps"), "{inner}: {got}");
    }
}

#[test]
fn several_links_in_an_item_or_cell_are_a_menu() {
    let links = "<a href=/c>Wasps</a> <a href=/d>Hornets</a> <a href=/e>Flies</a>";
    let parts = "<div><a href=/c>Wasps</a></div><div><a href=/d>Hornets</a></div>";
    let story = paragraphs("story", 4);
    let headings: String = (0..20).map(|number| format!("<h3>Hive {number}</h3>")).collect();
    for menu in [
        format!("<ul><li><div>{links}</div><li>Wax and honey</ul>"),
        format!("<ul><li> <p>{links}</p><li>Wax and honey</ul>"),
        format!("<ul><li><div><div>{parts}</div></div><li>Wax and honey</ul>"),
        format!("<table><tr><td><div>{links}</div></td><td>Wax and honey</td></tr></table>"),
    ] {
        for page in [
            format!("<article>{story}{menu}{story}</article>"),
            format!("<main>{headings}{menu}</main>"),
        ] {
            let got = article(&page).text;
            assert!(got.contains("Wax and honey") && !got.contains("Wasps"), "{page}: {got}");
        }
    }
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
fn labels_between_the_paragraphs_of_an_article_are_left_out() {
    let story = paragraphs("story", 4);
    let label = "<div>Sold by the hive<img src=/a.png></div>";
    let html = format!("<article><div>5 hives</div>{story}{label}{story}</article>");
    let got = article(&html);
    assert!(!got.text.contains("5 hives") && !got.text.contains("Sold"), "{}", got.text);
    assert!(!got.markdown.contains("Sold") && got.markdown.contains("a.png"), "{}", got.markdown);
    for kept in [
        "<div>They came at noon.</div>",
        "<div>What they said:</div>",
        "<p>Five hives</p>",
        "<ul><li>Five hives</li></ul>",
        "<h2>Five hives</h2><p>and more",
        "<div><code>fill --all hives</code></div>",
        "<div>One line of a text that is too long to be on a button or below a picture of bees</div>",
    ] {
        let got = article(&format!("<article>{story}{kept}{story}</article>")).text;
        let words = kept.split(['<', '>']).find(|part| part.contains(' ')).unwrap();
        assert!(got.contains(words), "{kept}: {got}");
    }
    // The lines of a poem, and an article whose paragraphs are no `p`.
    let poem = "<div>In the hive by the river</div>".repeat(30);
    let got = article(&format!("<article>{story}{poem}</article>")).text;
    assert!(got.contains("by the river"), "{got}");
    let bare = story.replace("<p>", "<div>").replace("</p>", "</div>");
    let got = article(&format!("<article>{bare}<div>Five hives</div>{bare}</article>")).text;
    assert!(got.contains("Five hives"), "{got}");
}

#[test]
fn what_is_about_the_author_is_left_out_by_the_authors_name() {
    let story = paragraphs("story", 4);
    let about = "<p>Ada Keeper is a writer who lives with her bees by the river.</p>";
    let html = |author: &str| {
        format!(
            "<meta name=author content='{author}'><article><p>Ada Keeper</p>{about}{story}\
             <p>Ada Keepers are many, and they write.</p>{about}</article>"
        )
    };
    let got = article(&html("Ada Keeper")).text;
    assert!(got.starts_with("Ada Keeper is") && got.ends_with("many, and they write."), "{got}");
    assert_eq!(got.matches("lives with her bees").count(), 1, "{got}");
    for other in ["Ada", "Bo Drone"] {
        let got = article(&html(other)).text;
        assert_eq!(got.matches("lives with her bees").count(), 2, "{other}: {got}");
    }
}

#[test]
fn the_last_headings_of_an_article_go_with_their_sections() {
    let story = paragraphs("story", 4);
    let links = "<ul><li><a href=/a>Wasps are next</a><li><a href=/b>Honey and wax</a></ul>";
    let html =
        format!("<article><h2>The hive</h2>{story}<h2>Hives</h2><h3>Reading</h3>{links}</article>");
    let got = article(&html).text;
    assert!(got.starts_with("The hive") && got.ends_with("number 3."), "{got}");
    // A sentence, and headings after which nothing was left out.
    for last in [format!("<h2>What do you say?</h2>{links}"), "<h2>Wax</h2><h2>Honey</h2>".into()] {
        let got = article(&format!("<article>{story}{last}</article>")).text;
        assert!(!got.ends_with("number 3."), "{last}: {got}");
    }
}

#[test]
fn a_menu_is_left_out_even_if_it_is_longer_than_the_article() {
    let item = |number| format!("<li><a href=/{number}><b>Hive {number}</b> for all bees</a>");
    let items: String = (0..200).map(item).collect();
    let story = paragraphs("story", 6);
    let offer = format!("<p>{LEAD}</p>");
    let html = format!("<header><ul>{items}</ul>{offer}</header><div>{story}</div>");
    let got = article(&html).text;
    assert!(got.starts_with(LEAD) && got.ends_with("number 5."), "{got}");
    assert_eq!(got.matches(LEAD).count(), 6, "{got}");
    // A long header that does not consist of links is content.
    let plain = items.replace("<a ", "<i ").replace("</a>", "</i>");
    let plain = format!("<main><header><ul>{plain}</ul></header>{story}</main>");
    assert!(article(&plain).text.contains("Hive 199"));
}

#[test]
fn sections_with_other_articles_are_left_out_of_articles() {
    let story = paragraphs("story", 8);
    let page = |heading: &str| {
        let others = paragraphs("teaser", 2);
        format!("<article>{story}<div><h3>{heading}</h3>{others}</div></article>")
    };
    for heading in ["Related articles", "More from The Hive", "You might also like"] {
        let got = article(&page(heading)).text;
        assert!(got.ends_with("story number 7."), "{heading}: {got}");
    }
    assert!(article(&page("Related work")).text.contains("teaser number 1"));
}

#[test]
fn buttons_and_what_a_condition_hides_are_left_out_of_articles() {
    let story = paragraphs("story", 8);
    let other = "<p>Choose a hive that suits your bees, and order it today.</p>";
    for name in ["w-condition-invisible", "wp-block-buttons", "btn btn-primary"] {
        let html = format!("<article>{story}<div class='{name}'>{other}</div>{story}</article>");
        assert!(!article(&html).text.contains("Choose a hive"), "{name}");
    }
}

#[test]
fn a_button_is_not_part_of_a_heading() {
    let html = format!("<title>Hives</title><h1>Crate hives <button>Copy path</button></h1>{LEAD}");
    assert_eq!(article(&html).title, "Crate hives");
    let html = format!("<title>Hives</title><h1><button>Crate hives</button></h1>{LEAD}");
    assert_eq!(article(&html).title, "Crate hives");
}

#[test]
fn a_post_that_consists_of_its_title_is_not_empty() {
    let got = article("<title>Bees are back in town</title><main><h1>Bees are back in town</h1>");
    assert_eq!(got.text, "Bees are back in town");
    assert_eq!(got.title, got.text);
}

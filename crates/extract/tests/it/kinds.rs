//! Pages that are not articles: products, forums, listings.

use fetchwell_extract::extract;
use url::Url;

fn text_at(url: &str, html: &str) -> String {
    extract(html, &Url::parse(url).unwrap()).text
}

fn text(html: &str) -> String {
    text_at("https://site.test/page", html)
}

fn paragraphs(name: &str, count: usize) -> String {
    let paragraph = |number| {
        format!(
            "<p>This is a paragraph about the {name} number {number}, and it is certainly long \
             enough to be prose, with a comma or two and a full stop at its end.</p>"
        )
    };
    (0..count).map(paragraph).collect()
}

fn items(name: &str, count: usize) -> String {
    (0..count).map(|number| format!("<li>{name} {number}</li>")).collect()
}

#[test]
fn prose_in_main_is_kept_even_if_its_name_is_that_of_a_frame() {
    let hives = items("Hive", 300);
    let about = paragraphs("hives", 4);
    let frame = "<div class=footer-links>Imprint</div>";
    let html = format!(
        "<main>{}<ul>{hives}</ul><div class=seo-footer-copy>{about}</div>{frame}</main>\
         <div class=footer>{}</div>",
        paragraphs("wax", 2),
        paragraphs("imprint", 2)
    );
    let got = text(&html);
    assert!(got.contains("Hive 299") && got.contains("hives number 3"), "{got}");
    assert!(!got.contains("imprint number") && !got.contains("Imprint"), "{got}");
}

#[test]
fn one_element_marked_as_a_product_makes_the_page_a_product() {
    let product = "<div itemscope itemtype='https://schema.org/Product'>";
    let reviews = format!("<div class=user-reviews>{}</div>", paragraphs("review", 4));
    let page =
        |marks: &str| format!("<main>{marks}{}</div>{reviews}</main>", paragraphs("hive", 3));
    let got = text(&page(product));
    assert!(got.contains("hive number 2") && !got.contains("review number"), "{got}");
    // Several are a list of products.
    let got = text(&page(&format!("{product}Wax</div>{product}")));
    assert!(got.contains("hive number 2") && got.contains("review number 3"), "{got}");
}

#[test]
fn sections_with_other_products_are_left_out_of_a_product() {
    let product =
        r#"<script type="application/ld+json">{"@type": "Product", "name": "Hive"}</script>"#;
    let others = |heading: &str| {
        format!(
            "<div class=x1><div class=x2><h2>{heading}</h2></div><ul>{}</ul></div>",
            items("Wax", 9)
        )
    };
    let page = |head: &str, heading: &str| {
        format!("{head}<main><h1>Hive</h1>{}{}</main>", paragraphs("hive", 4), others(heading))
    };
    for heading in ["People who viewed this item also viewed", "Similar items", "You may also like"]
    {
        let got = text(&page(product, heading));
        assert!(got.contains("hive number 3"), "{heading}: {got}");
        assert!(!got.contains(heading) && !got.contains("Wax"), "{heading}: {got}");
    }
    // Other headings introduce the product's own parts, and other pages are about what they list.
    assert!(text(&page(product, "What is in the box")).contains("Wax 8"));
    assert!(text(&page("", "Similar items")).contains("Wax 8"));
    // A section that is most of the page is not beside it.
    let most = page(product, "Similar items").replace("Wax", &"Wax and honey ".repeat(20));
    assert!(text(&most).contains("honey"));
}

#[test]
fn forums_are_known_by_their_host_and_by_numbered_topics() {
    let post = |name: &str| format!("<div class=reply>{}</div>", paragraphs(name, 2));
    let html = format!(
        "<article>{}</article><div class=comments>{}{}</div>",
        paragraphs("question", 2),
        post("answer"),
        post("thanks")
    );
    for url in [
        "https://beeforum.test/hives/17",
        "https://www.beeforums.test/hives/17",
        "https://bees.test/topic/17-hives",
    ] {
        assert!(text_at(url, &html).contains("thanks number 1"), "{url}");
    }
    // The topics of news sites have names.
    for url in ["https://bees.test/topic/hives", "https://forumbees.test/", "file:///topic/17"] {
        assert!(!text_at(url, &html).contains("thanks number 1"), "{url}");
    }
}

#[test]
fn what_is_said_about_the_author_of_a_post_is_left_out_of_a_forum() {
    let post = |number: usize| {
        format!(
            "<div><section class=message-user><h4 class=message-name>Ada</h4>\
             <div class=message-userDetails><h5 class=userTitle>Beekeeper</h5></div></section>{}</div>",
            paragraphs(&format!("post {number}"), 2)
        )
    };
    let html: String = (0..3).map(post).collect();
    let got = text_at("https://site.test/forum/bees", &html);
    assert!(got.contains("post 2 number 1") && !got.contains("Beekeeper"), "{got}");
}

#[test]
fn the_subjects_that_wordpress_writes_into_a_class_mean_nothing() {
    let entry =
        |class: &str| format!("<li class='{class}'><h3>Hives</h3>{}</li>", paragraphs(class, 1));
    let html = format!(
        "<main><ul>{}{}{}{}</ul></main>",
        entry("post-1 hentry category-bees"),
        entry("post-2 hentry category-newsletter tag-social"),
        entry("post-3 hentry newsletter"),
        entry("post-4 hentry category-wax")
    );
    let got = text(&html);
    for kept in ["post-1", "post-2", "post-4"] {
        assert!(got.contains(kept), "{kept}: {got}");
    }
    assert!(!got.contains("post-3"), "{got}");
}

#[test]
fn slides_that_are_hidden_from_screen_readers_only_are_kept_in_a_page_of_small_parts() {
    let slide = |number: usize, hidden: &str| {
        let offer = "We build hives of larch, paint them in the colour that your bees like best";
        format!("<li {hidden}>{offer}, and bring hive {number} to you.</li>")
    };
    let page = |hidden: &str| {
        let others: String = (3..9).map(|number| slide(number, "")).collect();
        format!("<main><ul>{others}{}</ul>{}</main>", slide(2, hidden), items("Wax", 900))
    };
    assert!(text(&page("aria-hidden=true")).contains("hive 2"));
    assert!(!text(&page("style='display: none'")).contains("hive 2"));
    let icon = page("").replace("<main>", "<main><div aria-hidden=true>arrow down</div>");
    assert!(!text(&icon).contains("arrow"));
}

#[test]
fn related_pages_are_left_out_of_a_listing() {
    let related = format!("<div class=related-searches><ul>{}</ul></div>", items("Wax", 9));
    let got = text(&format!("<main><ul>{}</ul>{related}</main>", items("Hive", 60)));
    assert!(got.contains("Hive 59") && !got.contains("Wax"), "{got}");
}

#[test]
fn an_image_without_an_end_tag_does_not_hide_the_page() {
    let got =
        text(&format!("<nav><svg><path d='M1 2'></nav><main>{}</main>", paragraphs("hive", 3)));
    assert!(got.contains("hive number 2"), "{got}");
}

#[test]
fn a_form_around_the_posts_of_a_forum_is_kept() {
    let post = |number: usize| {
        format!("<article class=post>{}</article>", paragraphs(&format!("post {number}"), 1))
    };
    let reply = "<form><p>Write your answer here, and be kind.</p></form>";
    let html = format!("<h1>Hives</h1><form>{}{}</form>{reply}", post(1), post(2));
    // Neither most of the page's text nor most of its prose.
    let html = format!("{}<main>{}{html}</main>", items("Menu", 200), paragraphs("rules", 4));
    let got = text_at("https://forum.site.test/hives", &html);
    assert!(got.contains("post 1") && got.contains("post 2") && !got.contains("kind"), "{got}");
}

#[test]
fn a_name_that_says_what_an_element_has_or_hides_is_not_what_it_is() {
    let part = |class: &str, name: &str| {
        format!("<div class='{class}'><ul>{}</ul></div>", items(name, 30))
    };
    let html = format!(
        "<main>{}{}{}{}</main>",
        part("grid hide-read-more-ad", "Hive"),
        part("layout has-sidebar", "Wax"),
        part("no-ads", "Honey"),
        part("grid sidebar", "Menu")
    );
    let got = text(&html);
    for kept in ["Hive 29", "Wax 29", "Honey 29"] {
        assert!(got.contains(kept), "{kept}: {got}");
    }
    assert!(!got.contains("Menu"), "{got}");
}

#[test]
fn the_entries_of_a_listing_keep_their_headers() {
    let entry = |number: usize| {
        format!(
            "<article><header><h2><a href=/{number}>Hive number {number}</a></h2>\
             <p><a href=/{number}>All about the hive with the number {number}, its bees and its \
             keeper, and what they do in spring</a></p></header></article>"
        )
    };
    let entries: String = (0..20).map(entry).collect();
    let html = format!("<header><a href=/>The Hive</a></header><main>{entries}</main>");
    let got = text_at("https://site.test/topic/hives", &html);
    assert!(got.contains("Hive number 19") && got.contains("number 7, its bees"), "{got}");
    assert!(!got.contains("The Hive"), "{got}");
}

//! Dates, authors, links and what else a page says about itself.

use fetchwell_extract::{Limits, crawl_links_within, declared_url_within, extract, links_within};
use url::Url;

use super::{LEAD, article, paragraphs};

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
        // The title leaves out what follows the dash.
        (
            "<title>Bees are back - In colour</title><h1>Hive forum</h1><p>Sun Jan 3, 2021</p>\
             <h2>Bees are back - In colour</h2><p>by ada » Fri May 17, 2024 8:30</p>"
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
fn a_person_with_the_sites_name_is_the_author_only_as_a_last_resort() {
    let linked = |names: &[&str]| {
        let person = |name: &&str| format!(r#"{{"@type": "Person", "name": "{name}"}}"#);
        let people = names.iter().map(person).collect::<Vec<_>>().join(", ");
        let article = format!(r#"{{"@type": "Article", "author": [{people}]}}"#);
        format!("<script type='application/ld+json'>{article}</script>")
    };
    let site = linked(&["The Hive"]);
    for other in [
        "<meta name=author content='Ada Keeper'>",
        "<h1>Bees</h1><a rel=author href=/x>Ada Keeper</a>",
        "<h1>Bees</h1><p class=byline>By Ada Keeper</p>",
        "<h1>Bees</h1><p>By Ada Keeper</p>",
    ] {
        assert_eq!(authors(&format!("{site}{other}")), ["Ada Keeper"], "{other}");
    }
    // Many people have a site under their name.
    assert_eq!(authors(&site), ["The Hive"]);
    assert_eq!(authors(&linked(&["Ada Keeper", "The Hive"])), ["Ada Keeper"]);
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

#[test]
fn what_leads_to_other_pages_is_told_from_what_does_not() {
    let html = "<base href=http://b.test/d/><link rel=next href=2><link rel='alternate' hreflang=de href=/de>\
        <link rel=alternate type=application/rss+xml href=/feed><link rel=stylesheet href=/s>\
        <link rel=canonical href=http://a.test/c><meta name=robots content='noindex'>\
        <meta name=OttoBot content=nofollow><meta name=other content=none>\
        <a href=x>1</a><a rel='ugc NoFollow' href=y>2</a><a href=y>3</a><map><area href=z></map><img src=i>";
    let at = Url::parse("http://a.test/").unwrap();
    let got = crawl_links_within(html, &at, "ottobot", &Limits::NONE).unwrap();
    let links: Vec<&str> = got.links.iter().map(Url::as_str).collect();
    let expected = [
        "http://b.test/d/2",
        "http://b.test/de",
        "http://a.test/c",
        "http://b.test/d/x",
        "http://b.test/d/y",
        "http://b.test/d/z",
    ];
    assert_eq!(links, expected);
    assert_eq!((got.nofollow, got.robots), (1, vec!["noindex".to_owned(), "nofollow".to_owned()]));
}

/// An index page consists of short links, whose URLs together are longer than the page.
#[test]
fn an_index_page_has_all_its_links_and_a_bomb_does_not() {
    let at = Url::parse("http://a.test/").unwrap();
    let links: String = (0..3_000).map(|n| format!("<a href={n}></a>")).collect();
    for (folder_bytes, is_cut) in [(50, false), (1_000, true)] {
        let html = format!("<base href=/{}/>{links}", "x".repeat(folder_bytes));
        let got = crawl_links_within(&html, &at, "ottobot", &Limits::NONE).unwrap();
        assert_eq!((got.links.len() < 3_000, got.is_cut), (is_cut, is_cut), "{folder_bytes}");
    }
    let many: String =
        (0..10_001).map(|n| format!("<a href=/a-page-with-a-name-{n}></a>")).collect();
    let got = crawl_links_within(&many, &at, "ottobot", &Limits::NONE).unwrap();
    assert_eq!((got.links.len(), got.is_cut), (10_000, true));
}

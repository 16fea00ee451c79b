//! White space, links, lists, tables and other markup, as Markdown.

use super::{article, check_markdown};

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

"""What a person does with the dashboard, in a real browser. Prints "all held" at its good end."""

import json
import os
import re
import urllib.request
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

SERVE, PAGES = os.environ["SERVE_URL"], os.environ["PAGES_URL"]
OPERATOR, VIEWER = os.environ["OPERATOR_TOKEN"], os.environ["VIEWER_TOKEN"]
PAGES_TOKEN = os.environ["PAGES_TOKEN"]
SHOTS = Path(os.environ["SCREENSHOTS"])
THOROUGH = "THOROUGH" in os.environ
# Pictures of whole pages, to look at every part of them.
THOROUGH_WHOLE = "WHOLE_PAGES" in os.environ
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
SECTIONS = {
    "overview": "/",
    "sites": "/dashboard/sites",
    "site": "/dashboard/sites/slow.test",
    "messages": "/dashboard/messages",
    "failed-messages": "/dashboard/messages?state=failed&site=shop.test",
    "dead-letters": "/dashboard/dead-letters",
    "articles": "/dashboard/articles",
    "common-crawl": "/dashboard/common-crawl",
    "callers": "/dashboard/callers",
    "system": "/dashboard/system",
    "api-docs": "/docs",
}


# On a phone, tables of the dashboard become blocks, so that nothing of them is beside the window.
CLIPPED = """() => window.innerWidth > 640 ? [] : [...document.querySelectorAll("table.rows *")]
    .filter((part) => part.getBoundingClientRect().right > window.innerWidth + 1)
    .map((part) => part.outerHTML.slice(0, 120)).slice(0, 4)"""

# The fields of a line stand at its lower edge, so fields of different heights lift their labels.
UNEVEN = """() => [...document.querySelectorAll(".inline")].map((line) => {
        const ends = [...line.querySelectorAll("label")].map((label) => label.getBoundingClientRect().bottom);
        return [line.innerText, Math.max(...ends) - Math.min(...ends)];
    }).filter(([text, pixels]) => pixels > 1)"""


def visit(browser: Browser, base: str, token: str, scheme: str = "light", size: dict[str, int] = WIDE, **more) -> Page:
    """A page of a new browser of somebody who has logged in."""
    context = browser.new_context(base_url=base, color_scheme=scheme, viewport=size, **more)
    page = context.new_page()
    watch(page)
    page.goto("/")
    expect(page).to_have_url(re.compile("/dashboard/login"))
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    return page


def watch(page: Page) -> None:
    """Whatever the browser complains of (a blocked style, a failing script) is a fault."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.complaints = complaints  # type: ignore[attr-defined]


def examine(page: Page, what: str, rules: list[str] | None = None) -> None:
    """No fault of accessibility, no complaint of the browser, nothing wider than the window."""
    options = {"resultTypes": ["violations"]}
    found = Axe().run(page, options=options | ({"runOnly": rules} if rules else {}))
    grave = found.response["violations"]
    told = [(fault["id"], [node["html"][:200] for node in fault["nodes"]][:4]) for fault in grave]
    assert not grave, f"{what}: {json.dumps(told, indent=1)}"
    assert not page.complaints, f"{what}: {page.complaints}"  # type: ignore[attr-defined]
    wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window, f"{what}: {wide} pixels in a window of {window}"
    clipped = page.evaluate(CLIPPED)
    assert not clipped, f"{what}: cut off at the side: {clipped}"
    uneven = page.evaluate(UNEVEN)
    assert not uneven, f"{what}: labels at different heights: {uneven}"
    headings = page.get_by_role("heading", level=1).count()
    assert headings == 1, f"{what}: {headings} main headings"


def picture(page: Page, name: str, whole: bool = False) -> None:
    if not THOROUGH:
        return
    page.screenshot(path=SHOTS / f"{name}.png", full_page=whole)


def said(page: Page) -> str:
    return page.locator(".notice").first.inner_text()


def post_message(url: str, correlation_id: str) -> None:
    body = json.dumps({"url": url, "retailer": "admhr", "correlation_id": correlation_id}).encode()
    headers = {"Authorization": f"Bearer {OPERATOR}", "Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{SERVE}/fetch", body, headers)).read()


def before_the_door(browser: Browser) -> None:
    context = browser.new_context(base_url=SERVE, viewport=WIDE)
    page = context.new_page()
    watch(page)
    page.goto("/dashboard/sites")
    expect(page).to_have_url(re.compile(r"/dashboard/login\?to=%2Fdashboard%2Fsites"))
    examine(page, "login")
    picture(page, "login")
    page.get_by_label("Token").fill("fw_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown or was revoked")
    page.get_by_label("Token").fill(OPERATOR)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/dashboard/sites$"))
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile("/dashboard/login"))
    context.close()


def every_page(browser: Browser) -> None:
    # Contrast depends on the colours and overflow on the width, so two of the four show each. Only the first needs all
    # rules of accessibility.
    looks = [("light", "", WIDE, None), ("dark", "-narrow", NARROW, ["color-contrast"])]
    if THOROUGH:
        sizes = (("", WIDE), ("-narrow", NARROW))
        looks = [(scheme, name, size, None) for scheme in ("light", "dark") for name, size in sizes]
    for scheme, name, size, rules in looks:
        page = visit(browser, SERVE, OPERATOR, scheme, size)
        for section, path in SECTIONS.items():
            page.goto(path)
            examine(page, f"{section}, {scheme}{name}", rules)
            picture(page, f"{section}-{scheme}{name}", whole=THOROUGH_WHOLE)
        for path, link in (("/dashboard/messages?state=failed", "missing"), ("/dashboard/articles", "Foxes")):
            page.goto(path)
            page.get_by_role("link", name=link).first.click()
            page.wait_for_load_state()
            examine(page, f"{link}, {scheme}{name}", rules)
            picture(page, f"{'message' if link == 'missing' else 'article'}-{scheme}{name}", whole=True)
        page.context.close()


def orders_to_a_site(browser: Browser) -> None:
    page = visit(browser, SERVE, OPERATOR)
    page.goto("/dashboard/sites")
    page.get_by_role("link", name="shop.test").click()
    expect(page.locator("code", has_text="fetchwell sites pause shop.test")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    assert "is paused" in said(page)
    page.goto("/dashboard/sites?is=paused")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="shop.test").click()
    page.get_by_role("button", name="Resume").click()
    assert "is resumed" in said(page)
    page.get_by_label("Requests per second").fill("0.5")
    page.get_by_role("button", name="Set rate").click()
    expect(page.locator("#facts")).to_contain_text("every 2.0 s (operator")
    page.get_by_role("button", name="Clear rate").click()
    expect(page.locator("#facts")).to_contain_text("default rate")
    page.goto("/dashboard/sites/down.test")
    expect(page.locator("#facts")).to_contain_text("down")
    page.get_by_role("button", name="Reset breaker").click()
    assert "has its breaker closed" in said(page)
    page.get_by_role("button", name="Read robots.txt again").click()
    assert "read again" in said(page)
    page.context.close()


def messages(browser: Browser) -> None:
    page = visit(browser, SERVE, OPERATOR)
    page.goto("/dashboard/messages")
    page.get_by_label("URL contains").fill("missing?1")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile("text=missing"))
    page.get_by_role("link", name="failed").click()
    expect(page.get_by_role("heading", name=re.compile("^1 matching"))).to_be_visible()
    page.get_by_role("link", name="missing?1").click()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    assert "is retried as" in said(page)
    page.get_by_text("Retried as", exact=True).wait_for()
    page.goto("/dashboard/dead-letters")
    page.get_by_role("row", name=re.compile("http_error 404")).first.get_by_role("button", name="Retry one").click()
    assert "Retried: 1." in said(page)
    page.goto("/dashboard/messages?state=failed&site=shop.test")
    page.get_by_role("button", name=re.compile("Retry all")).click()
    assert re.search(r"Retried: \d+\. Unchanged: \d+\.", said(page)), said(page)
    page.goto("/dashboard/system")
    expect(page.locator("#audit")).to_contain_text("retry_messages")
    page.context.close()


def rows_are_selected(browser: Browser) -> None:
    """With the keyboard alone."""
    page = visit(browser, SERVE, OPERATOR)
    page.goto("/dashboard/dead-letters")
    boxes = page.get_by_role("checkbox")
    assert boxes.count() >= 2
    expect(page.locator("[data-selected]")).to_have_text(re.compile("^0 of"))
    boxes.first.focus()
    page.keyboard.press("Space")
    expect(boxes.first).to_be_checked()
    expect(page.locator("[data-selected]")).to_have_text(re.compile("^1 of"))
    page.get_by_role("link", name="Select all on this page").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-selected]")).to_have_text(f"{boxes.count()} of {boxes.count()} selected")
    page.keyboard.press("Enter")
    expect(page.locator("[data-selected]")).to_have_text(re.compile("^0 of"))
    page.get_by_role("button", name="Retry selected").focus()
    page.keyboard.press("Enter")
    notice = page.locator(".notice").first
    expect(notice).to_contain_text("select at least one row")
    page.get_by_role("checkbox", name="Select refused_by_robots of private.test").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Retry selected").focus()
    page.keyboard.press("Enter")
    expect(notice).to_contain_text("Retried: 1 in 1 group (1 of private.test: refused_by_robots)")
    page.context.close()


def callers(browser: Browser) -> None:
    """With the keyboard alone. Each secret is on one page, and on no other."""
    page = visit(browser, SERVE, OPERATOR)
    page.goto("/dashboard/callers")
    notice = page.locator(".notice").first
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type("catalogue")
    page.keyboard.press("Enter")
    expect(notice).to_contain_text(re.compile("Added catalogue.* fw_"))
    examine(page, "a new caller")
    picture(page, "callers-new-light", whole=True)
    page.get_by_label("New token").first.focus()
    page.keyboard.type("ci")
    page.keyboard.press("Tab")
    page.keyboard.type("30d")
    page.keyboard.press("Enter")
    expect(notice).to_contain_text("Added the token ci of catalogue")
    revoke = page.get_by_role("button", name="Revoke the token ci of catalogue")
    revoke.focus()
    page.keyboard.press("Enter")
    # It waits until no process accepts the token.
    expect(notice).to_contain_text("The token ci of catalogue is revoked", timeout=20_000)
    assert "fw_" not in page.content()
    page.context.close()


def sites_are_sorted(browser: Browser) -> None:
    page = visit(browser, SERVE, OPERATOR)
    page.goto("/dashboard/sites")
    expect(page.get_by_role("row").nth(1)).to_contain_text("down.test")
    head = page.get_by_role("columnheader", name="Site", exact=False).first
    head.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("sort=name"))
    expect(page.get_by_role("columnheader", name="Site").first).to_have_attribute("aria-sort", "ascending")
    expect(page.get_by_role("row").nth(1)).to_contain_text("busy.test")
    page.context.close()


def the_documentation(browser: Browser) -> None:
    context = browser.new_context(base_url=SERVE, viewport=WIDE)
    page = context.new_page()
    watch(page)
    page.goto("/docs")
    contents = page.get_by_role("navigation", name="Contents")
    expect(contents.get_by_role("link").nth(1)).to_have_text("POST /fetch")
    contents.get_by_role("link", name="GET /messages/{id}", exact=True).click()
    expect(page).to_have_url(re.compile("#get-messages-id"))
    box = page.locator("#post-fetch .try")
    box.locator("summary").click()
    box.get_by_role("button", name="Send POST /fetch").click()
    expect(box.locator("[data-status]")).to_contain_text("needs a token")
    page.get_by_label("Token, to try the calls").fill(OPERATOR)
    body = {"url": "http://shop.test/page?docs", "retailer": "admhr", "correlation_id": "from-the-docs"}
    box.get_by_label("Body (JSON)").fill(json.dumps(body))
    box.get_by_role("button", name="Send POST /fetch").focus()
    page.keyboard.press("Enter")
    expect(box.locator("[data-status]")).to_contain_text("200")
    expect(box.locator("[data-answer]")).to_contain_text("msg_")
    box.get_by_label("Body (JSON)").fill("{}")
    box.get_by_role("button", name="Send POST /fetch").click()
    expect(box.locator("[data-status]")).to_contain_text("422")
    expect(box.locator("[data-answer]")).to_contain_text("invalid-field")
    page.complaints.clear()  # Chromium reports the 422 itself.
    examine(page, "the documentation with an answer")
    kept = page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
    assert kept == [0, 0, ""], kept
    page.reload()
    expect(page.get_by_label("Token, to try the calls")).to_have_value("")
    context.close()


def what_waits_is_cancelled(browser: Browser) -> None:
    """What waits for a paused site waits in the store, where it can be taken back, one by one or all that match."""
    page = visit(browser, SERVE, OPERATOR)
    page.goto("/dashboard/sites/shop.test")
    page.get_by_role("button", name="Pause").click()
    matching = "/dashboard/messages?site=shop.test&text=regretted"
    post_message("http://shop.test/regretted?0", "regretted-0")
    reload_until(page, f"{matching}&state=delayed", "1 matching")
    page.get_by_role("link", name="regretted?0").click()
    page.get_by_role("button", name="Cancel").click()
    assert "was cancelled" in said(page), said(page)
    for number in (1, 2, 3):
        post_message(f"http://shop.test/regretted?{number}", f"regretted-{number}")
    # Those that came before the store had closed the site are put off, the others just wait.
    reload_until(page, f"{matching}&state=processing", "0 matching")
    for state in ("queued", "delayed"):
        page.goto(f"{matching}&state={state}")
        cancel = page.get_by_role("button", name=re.compile("Cancel all"))
        if cancel.is_visible():
            cancel.click()
            assert re.search(r"Cancelled: [1-3]\.", said(page)), said(page)
    page.goto(f"{matching}&state=failed")
    expect(page.get_by_role("heading", name=re.compile("^4 matching"))).to_be_visible()
    page.goto("/dashboard/sites/shop.test")
    page.get_by_role("button", name="Resume").click()
    page.goto("/dashboard/system")
    expect(page.locator("#audit")).to_contain_text("cancel_messages")
    page.context.close()


def reload_until(page: Page, path: str, heading: str) -> None:
    seen = page.get_by_role("heading", name=re.compile(f"^{heading}"))
    page.goto(path)
    for _ in range(100):
        if seen.is_visible():
            return
        page.wait_for_timeout(200)
        page.goto(path)
    expect(seen).to_be_visible()


def live(browser: Browser) -> None:
    page = visit(browser, SERVE, OPERATOR)
    page.goto("/dashboard/messages")
    expect(page.locator("#live-state")).to_contain_text("Live", timeout=20_000)
    post_message("http://shop.test/page?live", "came-while-watching")
    expect(page.get_by_text("came-while-watching")).to_be_visible(timeout=20_000)
    page.goto("/")
    expect(page.locator("#live-state")).to_contain_text("Live", timeout=20_000)
    axis = page.locator("#outcomes .axis")
    before = axis.inner_text()
    expect(axis).not_to_have_text(before, timeout=20_000)
    page.context.close()


def colours_and_keys(browser: Browser) -> None:
    page = visit(browser, SERVE, VIEWER)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(ground) != light
    page.goto("/dashboard/sites")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Auto").click()
    assert page.evaluate(ground) == light
    page.reload()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.context.close()


def a_viewer(browser: Browser) -> None:
    page = visit(browser, SERVE, VIEWER)
    for path in (*SECTIONS.values(), "/dashboard/messages?state=failed"):
        if path == "/docs":
            continue
        page.goto(path)
        names = {button.inner_text() for button in page.get_by_role("button").all()}
        assert names <= {"Light", "Auto", "Dark", "Log out", "Filter", "Search"}, f"{path}: {names}"
    picture(page, "viewer-site")
    page.context.close()


def without_scripts(browser: Browser) -> None:
    page = visit(browser, SERVE, OPERATOR, java_script_enabled=False)
    expect(page.get_by_text("per second").first).to_be_visible()
    page.goto("/dashboard/sites/news.test")
    page.get_by_role("button", name="Pause").click()
    assert "is paused" in said(page)
    page.get_by_role("button", name="Resume").click()
    assert "is resumed" in said(page)
    page.goto("/dashboard/messages?state=failed&site=shop.test")
    page.get_by_role("link", name="Select all on this page").click()
    expect(page.get_by_role("checkbox").first).to_be_checked()
    page.get_by_role("link", name="Select none").click()
    expect(page.get_by_role("checkbox").first).not_to_be_checked()
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Retry selected").click()
    assert "is retried as" in said(page), said(page)
    page.context.close()


def dead_letters(browser: Browser) -> None:
    page = visit(browser, PAGES, PAGES_TOKEN)
    page.goto("/dashboard/messages")
    expect(page.get_by_text("This process has no messages")).to_be_visible()
    examine(page, "no messages")
    page.goto("/dashboard/dead-letters")
    page.get_by_role("link", name="the server answered 404").first.wait_for(timeout=60_000)
    expect(page.locator("#groups-title")).to_contain_text("16 as of", timeout=60_000)
    examine(page, "letters")
    picture(page, "letters-light")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export all").click()
    assert len(Path(download.value.path()).read_text().splitlines()) == 16
    page.get_by_role("row", name=re.compile("14.*404")).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("the server answered 404")
    examine(page, "a group")
    picture(page, "letter-group-light")
    page.get_by_role("button", name="Drop", exact=True).first.click()
    assert "Dropped: 1." in said(page)
    page.get_by_role("button", name="Try again").first.click()
    assert "Retried: 1." in said(page)
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Drop selected").click()
    assert "Dropped: 1." in said(page), said(page)
    page.get_by_role("button", name="Retry 10").click()
    assert "Retried:" in said(page)
    page.get_by_role("button", name=re.compile("Drop all")).click()
    assert re.search("Dropped: [0-9]+", said(page)), said(page)
    page.context.close()


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        for story in (
            before_the_door, live, colours_and_keys, a_viewer, without_scripts, dead_letters, every_page,
            the_documentation, callers, sites_are_sorted, rows_are_selected,
            orders_to_a_site, messages, what_waits_is_cancelled,
        ):
            story(browser)
            print(story.__name__, flush=True)
        browser.close()
    print("all held")


main()

"""Opens hostile pages that the service fetched, in a browser that is logged in to the dashboard. Nothing of them may run:
neither as they are sent, nor if a browser showed what it is told to save. Prints "all held" at its good end."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable

from playwright.sync_api import BrowserContext, Error, Page, Route, expect, sync_playwright

SERVE, TOKEN = os.environ["SERVE_URL"], os.environ["TOKEN"]
PAGES = json.loads(os.environ["PAGES"])
GUARDS = ["content-security-policy", "x-content-type-options", "content-disposition"]
# What runs at all runs at once.
A_WHILE_MS = 1_000


class Watched:
    """A page, and the requests that came from what is shown in it."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.ran: list[str] = []
        self.downloads = 0
        self.page.on("download", self._downloaded)
        self.page.on("dialog", lambda dialog: self.ran.append(dialog.message) or dialog.dismiss())
        self.page.on("popup", lambda popup: self.ran.append(popup.url))
        self.page.route(re.compile("ran="), self._asked)

    def _downloaded(self, _: object) -> None:
        self.downloads += 1

    def _asked(self, route: Route) -> None:
        self.ran.append(route.request.url)
        route.abort()

    def open(self, path: str, without: Iterable[str] = ()) -> None:
        """Opens it, as if the service had not sent these headers."""

        def answer(route: Route) -> None:
            response = route.fetch()
            assert response.status == 200, f"{path}: {response.status} {response.text()}"
            headers = {name: value for name, value in response.headers.items() if name not in without}
            route.fulfill(response=response, headers=headers)

        self.page.route(f"{SERVE}{path}", answer)
        try:
            self.page.goto(f"{SERVE}{path}", wait_until="commit")
        except Error as error:
            # A page that is saved is not shown.
            assert "Download is starting" in str(error) or "ERR_ABORTED" in str(error), error
        self.page.wait_for_timeout(A_WHILE_MS)

    def expect_nothing(self, what: str) -> None:
        assert not self.ran, f"{what}: {self.ran}"
        assert self.page.title() != "ran", f"{what}: its script changed the title"
        assert "ran=" not in self.page.url, f"{what}: it went to {self.page.url}"


def log_in(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{SERVE}/dashboard/login")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.close()


def the_session_is_not_enough(context: BrowserContext) -> None:
    page = context.new_page()
    for path in (PAGES[0]["body"], PAGES[0]["read"]):
        response = page.goto(f"{SERVE}{path}")
        assert response is not None and response.status == 401, f"{path}: {response}"
    page.close()


def nothing_runs(context: BrowserContext) -> None:
    for page in PAGES:
        for path, is_shown in ((page["body"], page["is_shown"]), (page["read"], True)):
            watched = Watched(context)
            watched.open(path)
            watched.expect_nothing(path)
            if not is_shown:
                assert watched.downloads == 1, f"{path} is to be saved, not shown"
            watched.page.close()
            # The policy alone is enough, too.
            watched = Watched(context)
            watched.open(path, without=["content-disposition"])
            watched.expect_nothing(f"{path} without Content-Disposition")
            watched.page.close()


def without_our_headers_it_would_run(context: BrowserContext) -> None:
    """Or else this test would not show anything."""
    for page in PAGES[:3]:
        watched = Watched(context)
        watched.open(page["body"], without=GUARDS)
        assert watched.ran, f"{page['body']} does nothing by itself"
        watched.page.close()


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
    context = browser.new_context()
    log_in(context)
    the_session_is_not_enough(context)
    context.set_extra_http_headers({"Authorization": f"Bearer {TOKEN}"})
    nothing_runs(context)
    without_our_headers_it_would_run(context)
    browser.close()
print("all held")

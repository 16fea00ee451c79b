"""What Schemathesis can't know by itself: which URLs are taken, and that nobody has time to wait."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import strategies as st

HOSTS = ["shop.test", "SHOP.test.", "shop.test:8080", "deep.shop.test", "127.0.0.1", "xn--bcher-kva.test"]
PATH = st.text("abcXYZ019-._~!$&'()*+,;=:@/?%", max_size=20).map(lambda text: text.replace("%", "%41"))
URLS = st.builds("{}://{}/{}".format, st.sampled_from(["http", "HTTP"]), st.sampled_from(HOSTS), PATH)

schemathesis.openapi.format("uri", URLS)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """A result is waited for only where one comes at once, so that thousands of cases take minutes."""
    wait = str(case.query.get("wait", "")) if isinstance(case.query, dict) else ""
    if wait.isdigit() and int(wait) <= 60:
        case.query["wait"] = 0
    # The caller whose token all requests have must not be revoked.
    if isinstance(case.path_parameters, dict) and case.path_parameters.get("name") == "local":
        case.path_parameters["name"] = "nobody"
    if case.headers and str(case.headers.get("Prefer", "")).startswith("wait="):
        url = str(case.body.get("url", "")) if isinstance(case.body, dict) else ""
        case.headers["Prefer"] = "wait=1" if url.startswith("http://shop.test/") else "respond-async"

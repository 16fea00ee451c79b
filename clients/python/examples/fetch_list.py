"""Fetches the URLs of a list and writes a line of JSON for each result, in the order in which they come.

    FETCHWELL_TOKEN=fw_… python fetch_list.py admhr < urls.txt > results.jsonl
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import uuid

from fetchwell_client import Fetch, Fetchwell

BATCH = 1_000


def main() -> None:
    retailer = sys.argv[1] if len(sys.argv) > 1 else "default"
    base_url = os.environ.get("FETCHWELL_URL", "http://127.0.0.1:8080")
    run = uuid.uuid4()
    urls = [line.strip() for line in sys.stdin if line.strip()]
    with Fetchwell(base_url, os.environ["FETCHWELL_TOKEN"]) as fetchwell:
        # What was there before this run is not ours to print.
        cursor = newest_cursor(fetchwell)
        waiting: set[str] = set()
        for start in range(0, len(urls), BATCH):
            some = [Fetch(url, retailer, f"{run}/{start + n}") for n, url in enumerate(urls[start : start + BATCH])]
            waiting.update(receipt.message_id for receipt in fetchwell.send_all(some))
        while waiting:
            page = fetchwell.outbox(cursor, limit=BATCH, wait=30)
            cursor = page.next
            for result in page:
                if result.inbox_message_id in waiting:
                    waiting.discard(result.inbox_message_id)
                    print(json.dumps(dataclasses.asdict(result), default=str), flush=True)


def newest_cursor(fetchwell: Fetchwell) -> str | None:
    cursor = None
    while True:
        page = fetchwell.outbox(cursor, limit=1_000)
        if not page.messages:
            return page.next
        cursor = page.next


if __name__ == "__main__":
    main()

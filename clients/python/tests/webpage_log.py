"""Events, one a line of standard input, against their description and the example's model.

Run by crates/fetchwell/tests/it/webpage_log.rs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator, FormatChecker, ValidationError

TOP = Path(__file__).parents[3]
sys.path.insert(0, str(TOP / "clients/python/examples"))

from consume_pages import WebpageFetched  # noqa: E402


def main() -> None:
    described = yaml.safe_load((TOP / "docs/webpage_log.asyncapi.yaml").read_text(encoding="utf-8"))
    message = described["components"]["messages"]["webpageFetched"]
    payload = validator(message["payload"])
    examples = [example["payload"] for example in message["examples"]]
    events = [json.loads(line) for line in sys.stdin]
    assert events, "no event to check"
    for event in events + examples:
        payload.validate(event)
        WebpageFetched.model_validate(event)
    assert set(WebpageFetched.model_fields) == set(message["payload"]["properties"])
    a_broken_event_is_noticed(payload, events[0])
    print(f"{len(events)} events are as described")


def validator(schema: dict[str, Any]) -> Draft7Validator:
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema, format_checker=FormatChecker())


def a_broken_event_is_noticed(payload: Draft7Validator, event: dict[str, Any]) -> None:
    for field in event:
        for broken in ({key: event[key] for key in event if key != field}, {**event, field: []}):
            try:
                payload.validate(broken)
            except ValidationError:
                continue
            raise AssertionError(f"nobody noticed what is wrong with {field}: {broken}")


if __name__ == "__main__":
    main()

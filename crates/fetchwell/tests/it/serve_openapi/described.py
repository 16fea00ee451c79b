"""The OpenAPI document against its specification, and webhooks and events of a running service against the document.

Run by mod.rs: the document is the argument.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import httpx
from fetchwell_client import Fetch, Fetchwell
from jsonschema import Draft202012Validator, ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator
from scripted import Request, server

URL = os.environ["FETCHWELL_URL"]
TOKEN = os.environ["FETCHWELL_TOKEN"]


def the_document_is_valid(document: dict[str, Any]) -> None:
    faults = [str(fault) for fault in OpenAPIV31SpecValidator(document).iter_errors()]
    assert not faults, faults
    # A validator that finds nothing would find nothing here, either.
    for path in [("paths", "/fetch", "post", "responses"), ("webhooks", "fetch.completed", "post", "responses")]:
        broken = json.loads(json.dumps(document))
        part = broken
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = {"nonsense": 1}
        assert list(OpenAPIV31SpecValidator(broken).iter_errors()), path
    operations = [
        operation["operationId"]
        for section in ["paths", "webhooks"]
        for item in document[section].values()
        for operation in item.values()
    ]
    assert len(operations) == len(set(operations)) and all(name.isidentifier() for name in operations), operations
    assert all(name.isidentifier() for name in document["components"]["schemas"])


def validate(document: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    whole = {**schema, "components": document["components"]}
    Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(value)


def webhooks_are_as_documented(document: dict[str, Any], fetchwell: Fetchwell) -> None:
    with server() as receiver:
        hook = f"{receiver.url}/hook"
        urls = ["http://pages.test/article", "http://gone.test/x", "http://pages.test/large"]
        for url in urls:
            fetchwell.send(Fetch(url, callback_url=hook, extract=True, links=True))
        fetchwell.send_batch([Fetch("http://pages.test/one")], callback_url=hook)
        start_crawl("http://pages.test/one", hook)
        deliveries = [receiver.next() for _ in range(5)]
    kinds = sorted(kind for delivery in deliveries for kind in [documented_type(document, delivery)])
    assert kinds == ["batch.completed", "crawl.completed", "fetch.completed", "fetch.completed", "fetch.failed"], kinds


def start_crawl(url: str, hook: str) -> None:
    crawl = {"urls": [url], "scope": "page", "sitemaps": "off", "callback_url": hook}
    httpx.post(f"{URL}/crawl", json=crawl, headers={"Authorization": f"Bearer {TOKEN}"}).raise_for_status()


def documented_type(document: dict[str, Any], delivery: Request) -> str:
    """The type of a delivery that is as its webhook says."""
    event = json.loads(delivery.body)
    operation = document["webhooks"][event["type"]]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    validate(document, schema, event)
    unknown = set(event) - set(resolved(document, schema)["properties"])
    assert not unknown, unknown
    if event["type"].startswith("fetch."):
        known = document["components"]["schemas"]["DeliveredResult"]["properties"]
        assert set(event["data"]["outbox"]) <= set(known), event
    for header in operation["parameters"]:
        assert header["in"] == "header" and header["name"] in delivery.headers, header
    try:
        validate(document, schema, event | {"data": {"id": 1}})
    except ValidationError:
        return str(event["type"])
    raise AssertionError(f"anything is a {event['type']}")


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema["$ref"].removeprefix("#/components/schemas/")
    found: dict[str, Any] = document["components"]["schemas"][name]
    return found


def events_are_as_documented(document: dict[str, Any]) -> None:
    contents = document["paths"]["/outbox"]["get"]["responses"]["200"]["content"]
    schema = contents["text/event-stream"]["schema"]["items"]
    seen = set()
    for event in raw_events():
        validate(document, schema, event)
        kinds = [resolved(document, one) for one in resolved(document, schema)["oneOf"]]
        kind = next(kind for kind in kinds if event["event"] in kind["properties"]["event"]["enum"])
        validate(document, kind["properties"]["data"]["contentSchema"], json.loads(event["data"]))
        seen.add(event["event"])
        if len(seen) == len(kinds):
            return


def raw_events() -> Iterator[dict[str, str]]:
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {TOKEN}"}
    event: dict[str, str] = {}
    with httpx.stream("GET", f"{URL}/outbox", headers=headers, timeout=60) as response:
        assert response.headers["content-type"] == "text/event-stream"
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if line == "" and event:
                yield event
                event = {}
            elif name:
                event[name] = value


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    the_document_is_valid(document)
    with Fetchwell(URL, TOKEN) as fetchwell:
        webhooks_are_as_documented(document, fetchwell)
    events_are_as_documented(document)
    print("all held")


main()

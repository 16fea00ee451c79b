"""The stream of events: `text/event-stream`, decoded as it arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import FetchwellError
from .models import BatchCompletedEvent, OutboxMessage, ResultEvent, StreamEvent, read, read_batch

SILENCE_S = 60.0
"""The service sends a line every 15 seconds. After four of these, the connection is considered dead."""
MAX_EVENT_BYTES = 256 * 1024 * 1024
"""No event is larger: the service limits bodies."""


class EventDecoder:
    """Splits the bytes of a stream into events. It holds one event at a time, of at most `MAX_EVENT_BYTES`."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[str] = []
        self._size = 0
        self._event = ""
        self._id: str | None = None
        self.last_id: str | None = None
        """The id of the last complete event, of a known type or not."""

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """The events that this piece completes."""
        begin = 0
        while (end := piece.find(b"\n", begin)) >= 0:
            self._line += piece[begin:end]
            line, self._line = bytes(self._line), bytearray()
            begin = end + 1
            event = self._take(line.removesuffix(b"\r").decode("utf-8", "replace"))
            if event is not None:
                yield event
        self._line += piece[begin:]
        if self._size + len(self._line) > MAX_EVENT_BYTES:
            raise FetchwellError(f"an event of the stream is over {MAX_EVENT_BYTES} bytes; read results with outbox()")

    def _take(self, line: str) -> StreamEvent | None:
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            self._id = value
        return None

    def _end(self) -> StreamEvent | None:
        event, data = self._event, "\n".join(self._data)
        self._event, self._data, self._size = "", [], 0
        # Only now: the stream may break between the id of an event and its data.
        self.last_id = self._id
        if not data or self.last_id is None:
            return None
        if event == "result":
            return ResultEvent(self.last_id, read(OutboxMessage, members(data)))
        if event == "batch.completed":
            return BatchCompletedEvent(self.last_id, read_batch(members(data)))
        # A newer service may send events that this version does not know.
        return None


def members(data: str) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise FetchwellError(f"the stream has an event that is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise FetchwellError("the stream has an event that is not a JSON object")
    return found

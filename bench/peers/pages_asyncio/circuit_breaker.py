"""Stops the taking of URLs while a site appears down."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

log = logging.getLogger(__name__)


class CircuitBreaker:
    """One for the process, as the design has it; its tasks share it."""

    def __init__(self, failure_threshold: int, initial_backoff: float, max_backoff: float, multiplier: float) -> None:
        self._threshold = failure_threshold
        self._initial_backoff = initial_backoff
        self._max_backoff = max_backoff
        self._multiplier = multiplier
        self._failures = 0
        self._backoff = initial_backoff
        self._closed = asyncio.Event()
        self._closed.set()
        self.state: Literal["closed", "open", "half_open"] = "closed"

    def record_success(self) -> None:
        self._failures = 0

    def record_site_wide_failure(self, domain: str, probe: Callable[[str], Awaitable[bool]]) -> None:
        self._failures += 1
        if self._closed.is_set() and self._failures >= self._threshold:
            self._closed.clear()
            self._task = asyncio.create_task(self._recover(domain, probe))

    async def wait_if_open(self, stop: asyncio.Event) -> None:
        if self._closed.is_set():
            return
        waits = [asyncio.create_task(event.wait()) for event in (self._closed, stop)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _recover(self, domain: str, probe: Callable[[str], Awaitable[bool]]) -> None:
        while not self._closed.is_set():
            self.state = "open"
            log.warning("Circuit open: %s appears down. Next probe in %.0fs.", domain, self._backoff)
            await asyncio.sleep(self._backoff)
            self.state = "half_open"
            if await probe(domain):
                log.warning("Circuit closed: %s is back.", domain)
                self._failures, self._backoff, self.state = 0, self._initial_backoff, "closed"
                self._closed.set()
            else:
                self._backoff = min(self._backoff * self._multiplier, self._max_backoff)

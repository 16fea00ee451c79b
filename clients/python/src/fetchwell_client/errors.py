"""Errors, grouped by what a program can do about them."""

from __future__ import annotations

from typing import Any


class FetchwellError(Exception):
    """Base class of all errors of this package."""


class Unreachable(FetchwellError):
    """The service stayed unreachable or busy for as long as the client retried."""


class Problem(FetchwellError):
    """The service rejected the request and says why (RFC 9457)."""

    def __init__(self, status: int, members: dict[str, Any]) -> None:
        self.status = status
        """The HTTP status."""
        self.members = members
        """The problem as it was sent: title, detail, url, correlation_id, errors…"""
        super().__init__(f"{status} {self.title}: {self.detail}" if self.detail else f"{status} {self.title}")

    @property
    def kind(self) -> str:
        """Names the kind of problem, such as `invalid-field`; empty if something other than the service answered."""
        return str(self.members.get("type", "")).rpartition("#problem-")[2]

    @property
    def title(self) -> str:
        return str(self.members.get("title", "the service refused"))

    @property
    def detail(self) -> str:
        errors = self.members.get("errors") or []
        fields = "; ".join(f"{error.get('pointer') or error.get('header')} {error.get('detail')}" for error in errors)
        return fields or str(self.members.get("detail") or "")


class CursorGone(Problem):
    """The results after the cursor are no longer kept."""

    @property
    def oldest(self) -> str:
        """The oldest cursor after which all results are still available."""
        return str(self.members["oldest"])

"""What can go wrong, and whether trying again can heal it."""

import json
from typing import Any, Optional


class KubecastError(Exception):
    """The base of all errors of this package."""


class Unreachable(KubecastError):
    """The gateway did not answer, or its answer broke off. Trying again can heal that."""


class Ended(KubecastError):
    """The gateway ended a stream, and coming back heals nothing. ``reason`` is that of its ``goodbye``."""

    def __init__(self, reason: str):
        super().__init__(f"the gateway ended the stream: {reason}")
        self.reason = reason


class HTTPError(KubecastError):
    """An answer that is not the one that was asked for.

    ``status`` is the HTTP status, ``reason`` why, in one word for programs ("" of an older gateway, or of a
    proxy), ``retry_after`` how many seconds the gateway asks to be left alone for (None if it does not say), and
    ``body`` what it sent. Of a 404 the reason is "NotEnabled" (this gateway keeps no history), "NotRecorded" (none of
    this kind), "NotKept" (of this job no spec, or no log) or "NotFound".
    """

    def __init__(self, status: int, body: bytes = b"", retry_after: Optional[float] = None):
        said = _said(body)
        super().__init__(f"{status}: {_words(said, body)}")
        self.status = status
        reason = said.get("reason") if isinstance(said, dict) else None
        self.reason = reason if isinstance(reason, str) else ""
        self.body = body
        self.retry_after = retry_after

    @property
    def heals(self) -> bool:
        """Whether asking again may be answered: the gateway, or a proxy before it, is busy or away."""
        return self.status in (408, 410, 425, 429) or self.status >= 500 or self.status < 400


class Denied(HTTPError):
    """The caller is not signed in (401), or may not see what was asked for (403)."""


def refused(status: int, body: bytes = b"", retry_after: Optional[float] = None) -> HTTPError:
    """The error of an answer."""
    return (Denied if status in (401, 403) else HTTPError)(status, body, retry_after)


def _said(body: bytes) -> Any:
    """What an answer says as JSON; None if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _words(said: Any, body: bytes) -> str:
    """The sentence in an answer: a Status of Kubernetes (message), or a problem of RFC 9457 (detail)."""
    if isinstance(said, dict):
        return str(said.get("message") or said.get("detail") or said.get("title") or said)
    return body[:200].decode("utf-8", "replace").strip() or "no explanation"

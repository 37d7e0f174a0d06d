"""What can go wrong, and whether trying again can heal it."""

import json
from typing import Optional


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

    ``status`` is the HTTP status, ``retry_after`` how many seconds the gateway asks to be left alone for
    (None if it does not say), and ``body`` what it sent.
    """

    def __init__(self, status: int, body: bytes = b"", retry_after: Optional[float] = None):
        super().__init__(f"{status}: {_words(body)}")
        self.status = status
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


def _words(body: bytes) -> str:
    """The sentence in an answer: a Status of Kubernetes (message), or a problem of RFC 9457 (detail)."""
    try:
        said = json.loads(body)
        return str(said.get("message") or said.get("detail") or said.get("title") or said)
    except (ValueError, AttributeError, RecursionError):
        return body[:200].decode("utf-8", "replace").strip() or "no explanation"

"""Requests to a gateway, over connections of their own."""

import http.client
import json
import socket
import ssl
import threading
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union
from urllib.parse import quote, urlencode, urlsplit

from .errors import KubecastError, Unreachable, refused

Token = Union[None, str, Callable[[], str]]
Query = Mapping[str, Any]

# A connection has to come about within so many seconds.
_CONNECT = 10.0
# Of an answer that is an error, so many bytes are read.
_MOST_OF_AN_ERROR = 64 << 10


class Transport:
    """Where a gateway is, and who asks it. It may be used by several threads."""

    def __init__(self, url: str, token: Token, ca_file: Optional[str], verify: bool, timeout: float):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is not the address of a gateway, as in https://kubecast.example.com")
        if parts.username or parts.password:
            raise ValueError("an address has no password in it; use token=")
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self._base = parts.path.rstrip("/")
        self._token, self._timeout = token, timeout
        self._tls: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=ca_file)
            if not verify:
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE

    def open(
        self,
        path: str,
        query: Query,
        accept: str,
        headers: Optional[Dict[str, str]] = None,
        silence: Optional[float] = None,
        body: Any = None,
        opened: Callable[["Answer"], None] = lambda _: None,
    ) -> "Answer":
        """Sends a GET, or a POST with a body of JSON, and returns its answer, whatever the status.

        ``silence`` is after how many seconds without a byte the connection counts as broken. ``opened`` is called
        before anything is sent, with what can be closed from then on.
        """
        address = self._address(path, query)
        sent = {"Accept": accept, "Accept-Encoding": "identity", **(headers or {})}
        token = self._token() if callable(self._token) else self._token
        if token:
            token = token.strip()
            if not token.isascii() or not token.isprintable():
                raise KubecastError("the token has characters that no token has")
            sent["Authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        timeout = silence or self._timeout
        within = min(timeout, _CONNECT)
        if self._tls is not None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=within, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=within)
        answer = Answer(connection)
        try:
            connection.connect()
            connection.auto_open = 0  # or one that is closed meanwhile would connect again, by itself
            connection.sock.settimeout(timeout)
            opened(answer)
            connection.request("GET" if data is None else "POST", address, body=data, headers=sent)
            answer.response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            answer.close()
            raise Unreachable(f"{self._host}: {error or type(error).__name__}") from error
        return answer

    def _address(self, path: str, query: Query) -> str:
        if not path.startswith("/"):
            raise ValueError(f"{path!r} is not a path of the gateway, as in /api/v1/pods")
        path, _, more = path.partition("?")
        if not more.isascii() or not more.isprintable() or " " in more or "#" in path + more:
            raise ValueError(f"the query in {path!r} is not encoded; give parameters as keyword arguments")
        told = [(key, _text(value)) for key, value in query.items() if value is not None]
        asked = "&".join(part for part in (more, urlencode(told)) if part)
        return self._base + quote(path, safe="/:@!$&'()*+,;=-._~%") + ("?" + asked if asked else "")

    def json(self, path: str, query: Query, accept: str = "application/json", body: Any = None) -> Any:
        """The JSON that is answered; an HTTPError for any status but 2xx."""
        with self.open(path, query, accept, body=body) as answer:
            answer.check()
            text = answer.all()
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError) as error:
            raise Unreachable(f"{path}: the answer cannot be read: {error}") from error


class Answer:
    """An answer whose body is read piece by piece. ``close`` may be called by any thread."""

    response: http.client.HTTPResponse

    def __init__(self, connection: http.client.HTTPConnection):
        self._connection = connection
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, also while another thread waits for its bytes."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            sock = self._connection.sock
        if sock is None:
            sock = getattr(getattr(getattr(self, "response", None), "fp", None), "raw", None)
            sock = getattr(sock, "_sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)  # wakes who waits in recv; close alone does not
            except OSError:
                pass
        self._connection.close()

    def check(self) -> None:
        """Raises an HTTPError unless the status is 2xx."""
        if not 200 <= self.response.status < 300:
            raise refused(self.response.status, self._some(), self._retry_after())

    def _some(self) -> bytes:
        try:
            return self.response.read(_MOST_OF_AN_ERROR)
        except (OSError, http.client.HTTPException):
            return b""

    def _retry_after(self) -> Optional[float]:
        text = self.response.headers.get("Retry-After", "")
        return float(text) if text.isascii() and text.isdigit() else None

    def content(self) -> Tuple[str, int]:
        """The type of the content, without parameters, and the status."""
        return self.response.headers.get_content_type(), self.response.status

    def all(self) -> bytes:
        """The whole body. One that breaks off is Unreachable, so half of an answer is never taken for all of it."""
        try:
            return self.response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the answer broke off: {error or type(error).__name__}") from error

    def piece(self) -> bytes:
        """The bytes that have come, as soon as there are some; none at the end, however it came."""
        try:
            return self.response.read1(256 << 10)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return b""  # cut, silent for too long, or closed by another thread


def _text(value: Any) -> str:
    """A parameter's value: lists by commas, truth values as the gateway writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(_text(one) for one in value)
    return str(value)

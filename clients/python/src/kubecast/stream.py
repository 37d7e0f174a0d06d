"""A stream that comes back: the rules for clients of docs/wire.md, "The rules of event streams"."""

import json
import random
import threading
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional

from .errors import Ended, HTTPError, KubecastError, Unreachable
from .sse import Frame, Parser
from .transport import Answer, Query, Transport

# Without a byte for so many heartbeats, a connection counts as broken.
_HEARTBEATS = 2.5
# What is waited for at most between two attempts, and at least after one that failed, in seconds.
_LONGEST, _SHORTEST = 30.0, 0.25
# However long a stream, or a proxy, says that it wants to be left alone.
_OBEDIENCE = 300.0
# After a frame that cannot be read, the position is asked for so many times; then all is asked for anew.
_READ_AGAIN = 2

# Why streams end for which coming back heals nothing.
_FOR_EVER = ("revoked",)


class Message(NamedTuple):
    """What a stream tells. ``kind`` is its event, or ``opened``, ``renewed`` or ``lost``, of a connection."""

    kind: str
    data: Any = None
    id: Optional[str] = None


class Unreadable(Exception):
    """A frame that the reader cannot use. It must be asked for again, since to skip it is to lose a change."""


class Stream:
    """The messages of one path, for as long as they are wanted.

    A reader calls ``accept`` once it has used a message: the position moves only then. If it cannot use one
    it calls ``reject``, and the message is asked for again. ``renew`` gives the position up.
    """

    def __init__(self, transport: Transport, path: str, query: Query, position: str = "", heartbeat: float = 15):
        self.position = position
        self.closed = threading.Event()
        self.trouble: Optional[KubecastError] = None  # of the last attempt, if it failed
        self._transport, self._path = transport, path
        self._query: Dict[str, Any] = {**query, "heartbeat": f"{heartbeat:g}s"}
        self._silence = heartbeat * _HEARTBEATS
        self._answer: Optional[Answer] = None
        self._lock = threading.Lock()
        self._retry = 2.0
        self._failures = 0  # attempts since something was told that proves the stream to stand
        self._unreadable = 0
        self._broken = False
        self._renewed = False

    def close(self) -> None:
        """Ends it, from any thread."""
        self.closed.set()
        with self._lock:
            answer = self._answer
        if answer is not None:
            answer.close()

    def accept(self, message: Message) -> None:
        """The message has been used."""
        if message.id is not None:
            self.position = message.id
            self._unreadable, self.trouble = 0, None

    def reject(self) -> None:
        """The message cannot be used: the connection ends, and the client comes back to where it was."""
        self._broken = True
        self.trouble = KubecastError("an event cannot be read")
        self._unreadable += 1
        if self._unreadable > _READ_AGAIN:
            self.renew()

    def renew(self) -> None:
        """Everything is asked for anew, as if for the first time; ``renewed`` is told when it is."""
        self._broken = self._renewed = True
        self._unreadable = 0
        self.position = ""

    def stands(self) -> None:
        """The stream has told what only one that works tells."""
        self._failures = 0

    def messages(self, decode: Callable[[Frame], Any]) -> Iterator[Message]:
        """All messages, until ``close``. ``decode`` makes the data of a frame, or raises Unreadable.

        Raises Denied, HTTPError or Ended where coming back heals nothing.
        """
        while not self.closed.is_set():
            wait: Optional[float] = None
            try:
                with self._open() as answer:
                    yield Message("opened")
                    if self._renewed:
                        self._renewed = False
                        yield Message("renewed")
                    yield from self._read(answer, decode)
            except Unreachable as error:
                self.trouble = error
            except HTTPError as error:
                if not error.heals:
                    raise
                self.trouble, wait = error, error.retry_after
            with self._lock:
                self._answer = None
            if self.closed.is_set():
                return
            yield Message("lost")
            self.closed.wait(self._pause(wait))

    def _open(self) -> Answer:
        headers = {"Last-Event-ID": self.position} if self.position else {}
        self._broken = False
        answer = self._transport.open(
            self._path, self._query, "text/event-stream", headers, self._silence, opened=self._opened
        )
        try:
            answer.check()
            kind, status = answer.content()
            if status == 204:
                raise Ended("gone")
            if kind != "text/event-stream":
                raise HTTPError(status, f"{kind} is no event stream; is there a page to sign in at before the gateway?".encode())
        except Exception:
            answer.close()
            raise
        return answer

    def _opened(self, answer: Answer) -> None:
        with self._lock:
            self._answer = answer
        if self.closed.is_set():
            answer.close()

    def _read(self, answer: Answer, decode: Callable[[Frame], Any]) -> Iterator[Message]:
        parser = Parser()
        while not self.closed.is_set():
            piece = answer.piece()
            if not piece:
                return
            try:
                frames = list(parser.feed(piece))
            except ValueError:
                self.reject()
                return
            if parser.retry is not None:
                self._retry = parser.retry
            for frame in frames:
                try:
                    data = read_json(frame) if frame.event == "goodbye" else decode(frame)
                except Unreadable:
                    self.reject()
                    return
                yield Message(frame.event, data, frame.id)
                if frame.event == "goodbye":
                    self._ends(str(data.get("reason", "")))
                    return
                if self._broken or self.closed.is_set():
                    return

    def _ends(self, reason: str) -> None:
        if reason in _FOR_EVER:
            raise Ended(reason)
        if reason in ("drain", "age", "expired"):
            self._failures = 0  # it was a good stream, which ends as planned

    def _pause(self, asked: Optional[float]) -> float:
        """How long to wait: as the stream said, and longer each time that nothing comes of it."""
        pause = self._retry * random.uniform(1, 1.5)
        if self._failures > 0:
            pause = max(pause, min(_SHORTEST * 2 ** (self._failures - 1), _LONGEST) * random.uniform(1, 1.5))
        self._failures += 1
        return min(max(pause, asked or 0), _OBEDIENCE)


def read_json(frame: Frame) -> Any:
    """The object in a frame's data; Unreadable if it has none."""
    try:
        data = json.loads(frame.data)
    except ValueError:
        raise Unreadable from None
    except RecursionError:  # asked for again, it would be the same
        raise KubecastError("an object is nested more deeply than Python can read; leave it out by fields= or a selector") from None
    if not isinstance(data, dict):
        raise Unreadable
    return data

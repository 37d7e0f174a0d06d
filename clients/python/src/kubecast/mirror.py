"""A list that is kept up to date."""

import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from .errors import Denied, KubecastError
from .sse import Frame
from .stream import Message, Stream, Unreadable, read_json

Object = Dict[str, Any]

_OBJECTS = ("added", "modified", "deleted")
# After these nothing more comes.
_LAST = ("denied", "failed", "closed")


class State(NamedTuple):
    """What a mirror shows."""

    status: str
    objects: List[Object]


class Mirror:
    """The objects of one list as the gateway has them, kept by a thread.

    ``status`` is ``loading`` (nothing is complete yet), ``live`` (this is what the gateway knows), ``stale``
    (what is shown was true, and may not be any more), ``denied`` or ``failed`` (nothing more comes; ``error`` says
    why), or ``closed``.

        with kc.follow("/apis/batch/v1/namespaces/team-a/jobs") as jobs:
            jobs.wait(lambda all: any(job["metadata"]["name"] == "train" for job in all))
    """

    def __init__(self, stream: Stream, heard: Callable[[Message], None] = lambda _: None):
        self._stream = stream
        self._heard = heard  # is called with each message, before it can be seen what it did
        self._changed = threading.Condition()
        self._count = 0  # of changes
        self._objects: Dict[str, Object] = {}
        self._snapshot: Optional[Dict[str, Object]] = {}  # what a snapshot has told that is not complete
        self._status = "loading"
        self._upstream = True  # the gateway's own watch stands
        self._current = False  # all that was missed has been told
        self._error: Optional[KubecastError] = None
        self._thread = threading.Thread(target=self._run, name="kubecast-mirror", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Mirror":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream and its thread. What was known stays readable."""
        self._stream.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @property
    def status(self) -> str:
        """See the class."""
        with self._changed:
            return self._status

    @property
    def error(self) -> Optional[KubecastError]:
        """Why nothing more comes; None as long as something may."""
        with self._changed:
            return self._error

    def objects(self) -> List[Object]:
        """What is known now. The objects must not be changed."""
        with self._changed:
            return list(self._objects.values())

    def states(self) -> Iterator[State]:
        """The state now, and then each that follows, up to the last one. What changes while the caller is busy with
        one state is told as one."""
        told = -1
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._count != told)
                told = self._count
                state = State(self._status, list(self._objects.values()))
            yield state
            if state.status in _LAST:
                return

    def wait(self, holds: Callable[[List[Object]], bool], timeout: Optional[float] = None) -> List[Object]:
        """Waits until the mirror is live and something holds of its objects, which it returns.

        TimeoutError after ``timeout`` seconds; the mirror's error if nothing more can come.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while True:
                if self._error is not None:
                    raise self._error
                if self._status == "closed":
                    raise KubecastError("the mirror is closed")
                if self._status == "live":
                    objects = list(self._objects.values())
                    if holds(objects):
                        return objects
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    trouble = self._stream.trouble
                    why = f" ({trouble})" if trouble else ""
                    raise TimeoutError(f"it did not hold within {timeout:g} s; the mirror is {self._status}{why}")
                self._changed.wait(left)

    def _run(self) -> None:
        error: Optional[KubecastError] = None
        try:
            for message in self._stream.messages(decode):
                with self._changed:
                    self._take(message)
                    self._told()
        except KubecastError as why:
            error = why
        except Exception as why:  # a defect, which must not look like a list that does not change
            error = KubecastError(f"{type(why).__name__}: {why}")
        denied = isinstance(error, Denied) or getattr(error, "reason", "") == "revoked"
        with self._changed:
            self._error = error
            self._status = "closed" if error is None else "denied" if denied else "failed"
            self._told()

    def _told(self) -> None:
        self._count += 1
        self._changed.notify_all()

    def _take(self, message: Message) -> None:
        kind, data = message.kind, message.data
        self._heard(message)
        if kind in ("opened", "lost"):
            self._current = False
            self._upstream = True
            if self._snapshot is not None or not self._stream.position:
                self._snapshot = {}  # one that is cut begins anew
        elif kind == "reset":
            self._snapshot, self._current = {}, False
        elif kind == "synced":
            if self._snapshot is not None:
                self._objects, self._snapshot = self._snapshot, None
            self._caught_up()
        elif kind == "bookmark":
            if self._snapshot is None:
                self._caught_up()
        elif kind in ("stale", "live"):
            self._upstream = kind == "live"
        elif kind in _OBJECTS or kind == "patched":
            if not self._change(kind, data):
                self._stream.renew()
                return
        self._stream.accept(message)
        self._state()

    def _caught_up(self) -> None:
        self._current = True
        self._stream.stands()

    def _change(self, kind: str, data: Object) -> bool:
        """Whether it could be applied: a patch of what is not there says that something was lost."""
        objects = self._objects if self._snapshot is None else self._snapshot
        if kind == "patched":
            base = objects.get(data["uid"])
            if base is None:
                return False
            patched = merge(base, data["patch"])
            patched["metadata"] = {**patched.get("metadata", {}), "resourceVersion": data["resourceVersion"]}
            objects[data["uid"]] = patched
        elif kind == "deleted":
            objects.pop(data["metadata"]["uid"], None)
        else:
            objects[data["metadata"]["uid"]] = data
        return True

    def _state(self) -> None:
        if self._snapshot is None and self._current and self._upstream:
            self._status = "live"
        elif self._status != "loading":
            self._status = "stale"


def merge(target: Any, patch: Any) -> Any:
    """The result of a merge patch (RFC 7386, section 2); neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def decode(frame: Frame) -> Any:
    """The data of an event of a watch. What is not known is passed over, and not read."""
    if frame.event == "patched":
        data = read_json(frame)
        if not all(isinstance(data.get(key), str) for key in ("uid", "resourceVersion")) or not isinstance(data.get("patch"), dict):
            raise Unreadable
        return data
    if frame.event in _OBJECTS:
        data = read_json(frame)
        metadata = data.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("uid"), str):
            raise Unreadable
        return data
    if frame.event in ("reset", "synced", "bookmark", "stale", "live", "narrowed", "widened", "expiring"):
        return read_json(frame)
    return None

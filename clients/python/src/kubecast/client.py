"""The gateway, as a program in Python sees it."""

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from . import mirror
from .errors import Ended, HTTPError, KubecastError
from .mirror import Mirror, Object
from .sse import Frame
from .stream import Message, Stream, Unreadable, read_json
from .transport import Token, Transport

# The states of jobs that have ended; docs/history.md.
ENDED = ("Succeeded", "Failed", "Cancelled", "Deleted")


class Event(NamedTuple):
    """What was told, and where to go on behind it.

    ``type`` is the event's (docs/wire.md), ``data`` an object, a transition, or what else the event has. Whoever
    keeps ``position`` with what they made of the event, and comes back with it, is told what follows, and nothing
    twice. It is None where the position did not move.
    """

    type: str
    data: Dict[str, Any]
    position: Optional[str]


class Client:
    """A gateway at an address, which may have a path: ``https://portal.example.com/kubecast``.

    ``token`` is a text, or a function that returns one; the function is called for each connection, so it can read a
    file that is renewed. ``ca_file`` has the certificates to trust in place of the system's; ``verify=False`` trusts
    any, and is for tests. ``timeout`` is for how many seconds an answer may be silent. A client may be used by
    several threads. Filters that have a name in Kubernetes are keyword arguments, as they are called on the wire:
    ``labelSelector="app=web"``, ``fieldSelector="$status=Running"``.
    """

    def __init__(
        self,
        url: str,
        token: Token = None,
        ca_file: Optional[str] = None,
        verify: bool = True,
        timeout: float = 60,
        heartbeat: float = 15,
    ):
        if not 5 <= heartbeat <= 60:
            raise ValueError("heartbeat is 5 to 60 seconds")
        self._transport = Transport(url, token, ca_file, verify, timeout)
        self._heartbeat = heartbeat

    def get(self, path: str, **query: Any) -> Any:
        """What is at a path: an object, a queue, ``/auth/me``. HTTPError if it is refused, 404 if it is not there."""
        return self._transport.json(path, query)

    def list(self, path: str, limit: int = 500, **query: Any) -> Iterator[Object]:
        """All objects of a list, read in pages.

        All pages are of one version. If that is gone before the end, the rest is of a newer one, as with kubectl:
        an object that changes meanwhile may be told twice, or not at all.
        """
        return self._pages(path, limit, query, lambda page: page["metadata"].get("continue"))

    def count(self, path: str, by: str, **query: Any) -> Dict[str, int]:
        """How many objects have which value at a path, such as ``$status`` or ``metadata.namespace``."""
        counts = self._transport.json(path, {**query, "countBy": by})["counts"]
        return {one["value"]: one["count"] for one in counts}

    def history(self, path: str, limit: int = 100, **query: Any) -> Iterator[Dict[str, Any]]:
        """The jobs of a kind that there are and were, the newest first; ``view="transitions"`` and ``"runs"`` likewise.

        ``path`` is that of the kind: ``/apis/batch/v1/namespaces/team-a/jobs``.
        """
        return self._pages("/history" + path, limit, query, lambda page: page.get("continue"))

    def ticket(self, path: str) -> str:
        """A ticket for one GET of that path and query within 30 s, for a client that can send no token."""
        return self._transport.json("/auth/ticket", {}, body={"path": path})["ticket"]

    def follow(self, path: str, **query: Any) -> Mirror:
        """The objects of a list, kept up to date by a thread. It must be closed, best by ``with``."""
        _no_page(query)
        return Mirror(self._stream(path, {"deltas": "merge-patch", **query}, ""))

    def watch(self, path: str, position: Optional[str] = None, **query: Any) -> Iterator[Event]:
        """The events of a list: without a position first the objects that are there, as ``added``, and ``synced``.

        It comes back by itself and misses nothing. After a ``reset`` all objects are told anew up to ``synced``: what
        is not among them is gone. So clients keep a map, or use :meth:`follow`, which does.
        """
        _no_page(query)
        return self._events(path, query, position, mirror.decode)

    def transitions(self, path: str, position: Optional[str] = None, **query: Any) -> Iterator[Event]:
        """The transitions of jobs as they are recorded, each once: ``transition``, with the transition as data.

        Without a position the newest ``limit`` come first, then ``synced``. ``owner="me"`` are one's own jobs.
        ``reset`` says that the position was too old, so that some may be missing.
        """
        return self._events("/history" + path, query, position, read_known)

    def logs(self, path: str, position: Optional[str] = None, **query: Any) -> Iterator[Event]:
        """The lines of a pod's containers, or of all pods of an owner: ``line``, ``started``, ``ended``, ``reset``.

        ``path`` is the pod's, or the owner's (``/apis/batch/v1/namespaces/team-a/jobs/train``). With
        ``follow=False`` it ends with what is there.
        """
        return self._events("/logs" + path, query, position, read_known, last=query.get("follow") is False)

    def wait_for_job(self, path: str, timeout: Optional[float] = None) -> str:
        """Waits until a job has ended, and returns how: ``Succeeded``, ``Failed``, ``Cancelled`` or ``Deleted``.

        ``path`` is the job's. A job that is deleted once it has ended, ended as it did. TimeoutError after
        ``timeout`` seconds; Denied or HTTPError if it may not be seen.
        """
        query: Dict[str, Any] = {"fields": "$status"}
        ended = ""
        # The mirror says whether the job is there, its listener how it was when it went.
        last: Dict[str, str] = {}
        with Mirror(self._stream(path, query, ""), lambda event: last.update(_status(event))) as job:

            def holds(objects: List[Object]) -> bool:
                nonlocal ended
                now = objects[0].get("$status", "") if objects else last.get("$status", "")
                ended = now if now in ENDED else "" if objects else "Deleted"
                return ended != ""

            job.wait(holds, timeout)
        return ended

    def _stream(self, path: str, query: Dict[str, Any], position: str) -> Stream:
        return Stream(self._transport, path, query, position, self._heartbeat)

    def _events(
        self, path: str, query: Dict[str, Any], position: Optional[str], decode: Callable[[Frame], Any], last: bool = False
    ) -> Iterator[Event]:
        stream = self._stream(path, query, position or "")
        try:
            for message in stream.messages(decode):
                if message.kind == "goodbye" and last:
                    reason = str(message.data.get("reason"))
                    if reason == "gone":
                        return
                    if reason == "unavailable":
                        raise Ended(reason)  # some of what is there cannot be read
                if message.kind == "renewed":
                    yield Event("reset", {"reason": "unreadable"}, None)
                elif isinstance(message.data, dict) and message.kind != "goodbye":
                    if message.kind not in ("stale", "reset"):
                        stream.stands()
                    yield Event(message.kind, message.data, message.id)
                stream.accept(message)
        except Ended as error:
            if not (last and error.reason == "gone"):
                raise
        finally:
            stream.close()

    def _pages(
        self, path: str, limit: int, query: Dict[str, Any], token: Callable[[Dict[str, Any]], Optional[str]]
    ) -> Iterator[Dict[str, Any]]:
        asked, rest = {**query, "limit": limit}, None
        while True:
            try:
                page = self._transport.json(path, {**asked, "continue": rest})
            except HTTPError as error:
                fresh = _fresh_token(error)
                if error.status != 410 or not rest or not fresh:
                    raise
                rest = fresh
                continue
            if not isinstance(page, dict) or not isinstance(page.get("items"), list):
                raise KubecastError(f"{path} is no list")
            yield from page["items"]
            rest = token(page)
            if not rest:
                return


def _status(message: Message) -> Dict[str, str]:
    """The status of the object that an event has."""
    has = message.kind in ("added", "modified", "deleted") and "$status" in message.data
    return {"$status": message.data["$status"]} if has else {}


def _no_page(query: Dict[str, Any]) -> None:
    """ValueError for what would make a stream another one, which has no end of a snapshot."""
    for name in ("limit", "sort", "offset", "countBy", "continue"):
        if name in query:
            raise ValueError(f"{name} is of lists: follow and watch have all objects, in no order")


def _fresh_token(error: HTTPError) -> Optional[str]:
    """The token with which a list goes on whose version is gone."""
    try:
        said = read_json(Frame("", None, error.body.decode("utf-8", "replace")))
        return (said.get("metadata") or {}).get("continue")
    except (Unreadable, AttributeError):
        return None


def read_known(frame: Frame) -> Any:
    """The data of any event. What is no JSON must be an event of a later version, which is passed over."""
    if frame.event in ("transition", "run", "line", "started", "ended", "synced", "reset", "bookmark", "stale", "live"):
        return read_json(frame)
    return None

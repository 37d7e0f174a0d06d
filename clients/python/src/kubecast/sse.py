"""Bytes of an event stream become frames (WHATWG HTML, 9.2, "Server-sent events")."""

from typing import Iterator, List, NamedTuple, Optional

# A line that is longer is no frame of a gateway's, whose objects have a few MiB at most.
LONGEST = 64 << 20


class Frame(NamedTuple):
    """One event. ``id`` is None where the frame has none, which leaves the position as it is."""

    event: str
    id: Optional[str]
    data: str


class Parser:
    """Takes bytes in pieces of any size.

    ``retry`` is how many seconds a client waits before it comes back; None until the stream says so.
    """

    def __init__(self) -> None:
        self.retry: Optional[float] = None
        self._pieces: List[bytes] = []  # of a line whose end has not come
        self._held = 0
        self._after_cr = False
        self._begun = False
        self._clear()

    def _clear(self) -> None:
        self._event, self._id, self._data = "", None, []  # type: str, Optional[str], List[str]

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole with these bytes."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if data:
            self._after_cr = data.endswith(b"\r")
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines[:-1]:
            if self._pieces:
                line = b"".join(self._pieces) + line
                self._pieces, self._held = [], 0
            frame = self._line(line)
            if frame is not None:
                yield frame
        if lines[-1]:
            self._pieces.append(lines[-1])
            self._held += len(lines[-1])
            if self._held > LONGEST:
                raise ValueError(f"a line of more than {LONGEST} bytes")

    def _line(self, line: bytes) -> Optional[Frame]:
        if not self._begun:
            self._begun = True
            if line.startswith(b"\xef\xbb\xbf"):
                line = line[3:]
        if not line:
            frame = Frame(self._event or "message", self._id, "\n".join(self._data)) if self._data else None
            self._clear()
            return frame
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        text = value.decode("utf-8", "replace")
        if name == b"event":
            self._event = text
        elif name == b"data":
            self._data.append(text)
        elif name == b"id" and "\0" not in text:
            self._id = text
        elif name == b"retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None

"""What the conformance suite does not see: parsing, pages, errors, and ends. Run by ``python3 -m unittest``."""

import json
import random
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kubecast import Client, Denied, Ended, HTTPError, KubecastError, Unreachable
from kubecast.errors import refused
from kubecast.mirror import merge
from kubecast.sse import Frame, Parser


class Server:
    """Answers each request by ``answer(handler)``, and keeps what was asked."""

    def __init__(self, answer):
        asked = self.asked = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked.append((self.command, self.path, dict(self.headers)))
                answer(self)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def says(handler, status, body, kind="application/json", headers=()):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(text)))
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(text)


def streams(handler, text):
    """An event stream that ends behind the text."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(b"retry: 1\n\n" + text.encode())
    handler.close_connection = True


def frame(event, data, id=None):
    return f"event: {event}\n" + (f"id: {id}\n" if id else "") + f"data: {json.dumps(data)}\n\n"


class Parsing(unittest.TestCase):
    def test_pieces_of_any_size_give_the_same_frames(self):
        text = "\ufeff: c\r\n\r\nevent: a\rid: 1\rdata: x\r\rdata\ndata: 熊\n\nid: 2\n\nevent: b\n\nretry: 1500\nretry: x\ndata:y\nid: a\0b\n\ndata: cut"
        whole = text.encode()
        wanted = [Frame("a", "1", "x"), Frame("message", None, "\n熊"), Frame("message", None, "y")]
        rng = random.Random(1)
        for _ in range(500):
            parser, frames, at = Parser(), [], 0
            while at < len(whole):
                size = rng.choice((1, 2, 3, 7, 100))
                frames += parser.feed(whole[at : at + size])
                at += size
            self.assertEqual(frames, wanted)
            self.assertEqual(parser.retry, 1.5)

    def test_a_line_without_an_end_is_not_kept_for_ever(self):
        parser = Parser()
        with self.assertRaises(ValueError):
            for _ in range(70):
                list(parser.feed(b"x" * (1 << 20)))

    def test_merge_patches_are_those_of_the_standard(self):
        for target, patch, wanted in [
            ({"a": "b"}, {"a": "c"}, {"a": "c"}),
            ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
            ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
            ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
            ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
            ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
            ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ]:
            before = json.dumps(target)
            self.assertEqual(merge(target, patch), wanted)
            self.assertEqual(json.dumps(target), before)


class Answers(unittest.TestCase):
    def test_lists_are_read_in_pages_and_go_on_where_a_version_is_gone(self):
        def answer(handler):
            if "continue=two" in handler.path:
                says(handler, 410, {"kind": "Status", "metadata": {"continue": "fresh"}, "message": "gone"})
            elif "continue=fresh" in handler.path:
                says(handler, 200, {"metadata": {}, "items": [{"n": 3}]})
            else:
                says(handler, 200, {"metadata": {"continue": "two"}, "items": [{"n": 1}, {"n": 2}]})

        with Server(answer) as server:
            items = Client(server.url + "/below/", token=lambda: " t\n").list("/api/v1/pods", limit=2, labelSelector="app in (a, b)", x=None)
            self.assertEqual([one["n"] for one in items], [1, 2, 3])
            self.assertEqual(server.asked[0][1], "/below/api/v1/pods?labelSelector=app+in+%28a%2C+b%29&limit=2")
            self.assertEqual(server.asked[0][2]["Authorization"], "Bearer t")

    def test_refusals_are_errors_in_words(self):
        for status, kind in [(400, HTTPError), (401, Denied), (403, Denied), (404, HTTPError), (410, HTTPError), (503, HTTPError)]:
            with Server(lambda h, status=status: says(h, status, {"detail": "no such thing"}, headers=[("Retry-After", "7")])) as server:
                with self.assertRaises(kind) as caught:
                    list(Client(server.url).history("/apis/batch/v1/jobs"))
                self.assertEqual((caught.exception.status, caught.exception.retry_after), (status, 7))
                self.assertIn("no such thing", str(caught.exception))

    def test_what_has_the_same_status_is_told_apart_by_its_reason(self):
        for said, reason in [({"reason": "NotEnabled"}, "NotEnabled"), ({}, ""), ({"reason": 7}, ""), ("NotKept", ""), (b"<html>", ""), (b"", "")]:
            body = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.assertEqual(refused(404, body).reason, reason)

    def test_what_python_cannot_read_is_an_error_of_this_package(self):
        deep = b"[" * 60_000
        self.assertTrue(refused(502, deep).heals)
        with Server(lambda h: says(h, 200, deep)) as server, self.assertRaises(Unreachable):
            Client(server.url).get("/api/v1/pods")
        nested = '{"a":' * 60_000 + "1" + "}" * 60_000
        with Server(lambda h: streams(h, "event: transition\nid: 1\ndata: " + nested + "\n\n")) as server:
            with self.assertRaises(KubecastError) as caught:  # and not asked for again and again
                next(Client(server.url).transitions("/apis/batch/v1/jobs"))
            self.assertIn("nested", str(caught.exception))

    def test_no_server_makes_a_client_silent_for_ever(self):
        stream = Client("http://127.0.0.1:9")._stream("/api/v1/pods", {}, "")
        stream._retry = 1e12
        self.assertLessEqual(stream._pause(1e12), 300)
        with Server(lambda h: says(h, 429, {}, headers=[("Retry-After", "\xb2")])) as server, self.assertRaises(HTTPError) as caught:
            Client(server.url).get("/api/v1/pods")
        self.assertIsNone(caught.exception.retry_after)

    def test_half_of_an_answer_is_not_taken_for_all_of_it(self):
        def answer(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", "100")
            handler.end_headers()
            handler.wfile.write(b'{"items":[],"metadata":{}}')
            handler.close_connection = True

        with Server(answer) as server, self.assertRaises(Unreachable):
            list(Client(server.url).list("/api/v1/pods"))

    def test_what_is_no_address_token_or_path_is_refused_at_once(self):
        for url in ("kubecast.example.com", "ftp://x", "https://", "https://u:p@x", "https://x/?a=b"):
            with self.assertRaises(ValueError):
                Client(url)
        for token in ("a\r\nX-Evil: 1", "b c\x00", "ü"):
            with self.assertRaises(KubecastError):
                Client("http://127.0.0.1:9", token=token).get("/api/v1/pods")
        for path in ("api/v1/pods", "/api/v1/pods?labelSelector=app in (a)", "/api/v1/pods#x", "/a?b=ü"):
            with self.assertRaises(ValueError):
                Client("http://127.0.0.1:9").get(path)
        for name in ("limit", "sort", "offset", "countBy"):  # they would make it a stream without an end of its snapshot
            with self.assertRaises(ValueError):
                Client("http://127.0.0.1:9").follow("/api/v1/pods", **{name: 1})
            with self.assertRaises(ValueError):
                Client("http://127.0.0.1:9").watch("/api/v1/pods", **{name: 1})
        with self.assertRaises(Unreachable) as caught:
            Client("http://[::1]", timeout=1).get("/api/v1/pods")
        self.assertIn("::1", str(caught.exception))
        with self.assertRaises(Unreachable):
            Client("http://127.0.0.1:9").get("/api/v1/pods")


class Streams(unittest.TestCase):
    def test_events_go_on_behind_what_was_used(self):
        def answer(handler):
            position = handler.headers.get("Last-Event-ID", "")
            n = int(position or 0) + 1
            streams(handler, "retry: 1\n\n" + frame("transition", {"seq": n}, n) + frame("hologram", "x") + "event: transition\nid: 9")

        with Server(answer) as server:
            events = Client(server.url).transitions("/apis/batch/v1/jobs", position="4", owner="me")
            self.assertEqual([next(events) for _ in range(3)], [("transition", {"seq": n}, str(n)) for n in (5, 6, 7)])
            events.close()
            self.assertIn("owner=me", server.asked[0][1])

    def test_a_position_that_is_given_up_is_said_to_be(self):
        def answer(handler):
            if handler.headers.get("Last-Event-ID"):
                streams(handler, "retry: 1\n\nevent: transition\nid: 9\ndata: {poison\n\n")
            else:
                streams(handler, frame("transition", {"seq": 7}, "7"))

        with Server(answer) as server:
            events = Client(server.url).transitions("/apis/batch/v1/jobs", position="4")
            self.assertEqual([next(events) for _ in range(2)], [("reset", {"reason": "unreadable"}, None), ("transition", {"seq": 7}, "7")])
            events.close()

    def test_an_event_that_is_not_used_is_told_again(self):
        with Server(lambda h: streams(h, frame("transition", {"seq": 1}, h.headers.get("Last-Event-ID", "first")))) as server:
            client = Client(server.url)
            position = None
            for _ in range(2):  # a program that ends before it has kept the position
                events = client.transitions("/apis/batch/v1/jobs", position=position)
                self.assertEqual(next(events).position, "first")
                events.close()

    def test_what_no_retry_heals_ends_an_iteration(self):
        with Server(lambda h: says(h, 403, {"message": "not yours"})) as server:
            with self.assertRaises(Denied):
                next(Client(server.url).watch("/api/v1/pods"))
        with Server(lambda h: streams(h, frame("goodbye", {"reason": "revoked"}, "1"))) as server:
            with self.assertRaises(Ended):
                next(Client(server.url).watch("/api/v1/pods"))

    def test_logs_that_are_not_followed_end(self):
        text = frame("line", {"text": "a"}, "1") + frame("synced", {"lines": 1}, "1") + frame("goodbye", {"reason": "gone"}, "1")
        with Server(lambda h: streams(h, text)) as server:
            events = list(Client(server.url).logs("/api/v1/namespaces/a/pods/b", follow=False))
            self.assertEqual([e.type for e in events], ["line", "synced"])
            self.assertIn("/logs/api/v1/namespaces/a/pods/b?follow=false", server.asked[0][1])

        def drains(handler):  # a gateway that is replaced amid a log
            if handler.headers.get("Last-Event-ID"):
                streams(handler, frame("line", {"text": "b"}, "2") + frame("goodbye", {"reason": "gone"}, "2"))
            else:
                streams(handler, "retry: 1\n\n" + frame("line", {"text": "a"}, "1") + frame("goodbye", {"reason": "drain"}, "1"))

        with Server(drains) as server:
            events = list(Client(server.url).logs("/api/v1/namespaces/a/pods/b", follow=False))
            self.assertEqual([e.data["text"] for e in events], ["a", "b"])
        with Server(lambda h: streams(h, frame("goodbye", {"reason": "unavailable"}, "1"))) as server:
            with self.assertRaises(Ended):  # some of what is there could not be read
                list(Client(server.url).logs("/api/v1/namespaces/a/pods/b", follow=False))

    def test_a_job_is_waited_for_to_its_end(self):
        def job(status):
            return {"metadata": {"uid": "u", "name": "a"}, "$status": status}

        def answer(handler):
            position = handler.headers.get("Last-Event-ID", "")
            start = frame("added", job("Running"), "e") + frame("synced", {}, "e.1")
            streams(handler, "retry: 1\n\n" + (start if not position else frame("modified", job("Failed"), "e.2") + frame("bookmark", {}, "e.2")))

        with Server(answer) as server:
            self.assertEqual(Client(server.url).wait_for_job("/apis/batch/v1/namespaces/n/jobs/a", timeout=30), "Failed")
        for status, wanted in [("Succeeded", "Succeeded"), ("Running", "Deleted")]:  # it is removed as it ends, and all comes at once
            text = frame("added", job("Running"), "e") + frame("synced", {}, "e.1") + frame("modified", job(status), "e.2") + frame("deleted", job(status), "e.3")
            with Server(lambda h, text=text: streams(h, text if not h.headers.get("Last-Event-ID") else frame("bookmark", {}, "e.3"))) as server:
                self.assertEqual(Client(server.url).wait_for_job("/apis/batch/v1/namespaces/n/jobs/a", timeout=30), wanted)
        with Server(lambda h: says(h, 404, {"message": "not found"})) as server, self.assertRaises(HTTPError):
            Client(server.url).wait_for_job("/apis/batch/v1/namespaces/n/jobs/a", timeout=30)

    def test_a_mirror_that_is_closed_leaves_no_thread_and_does_not_wait(self):
        def silent(handler):
            handler.send_response(200)
            handler.send_header("Content-Type", "text/event-stream")
            handler.end_headers()
            handler.wfile.flush()
            handler.connection.recv(1)  # until the client leaves

        before = threading.active_count()
        with Server(silent) as server:
            mirror = Client(server.url).follow("/api/v1/pods")
            while not server.asked:
                time.sleep(0.01)
            with self.assertRaises(TimeoutError):
                mirror.wait(lambda _: True, timeout=0.05)
            began = time.monotonic()
            mirror.close()
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(mirror.status, "closed")
            with self.assertRaises(KubecastError):
                mirror.wait(lambda _: True)
        deadline = time.monotonic() + 10
        while threading.active_count() > before and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertLessEqual(threading.active_count(), before)


if __name__ == "__main__":
    unittest.main()

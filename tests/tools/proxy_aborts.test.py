# SPDX-License-Identifier: BSL-1.0
"""proxy_aborts.test.py PROGRAM: places of inflight limits come back however an exchange ends.

A round is 100 connections with a request each, all of them under way together, of which each ends
in one of the ways below, on either side. WEIR_ROUNDS=10000 for the long run, WEIR_SEED for another.
"""

import json
import http.client
import os
import random
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

import proxied
from proxied import PATIENCE, Gate, Proxy, Upstream, reply, site, until

ROUNDS = int(os.environ.get("WEIR_ROUNDS", "300"))
SEED = int(os.environ.get("WEIR_SEED", "1"))
CONNECTIONS = 100
RESET = b"\1\0\0\0\0\0\0\0"  # linger on, for no time

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    sock.close()


class Unsteady:
    """An upstream of one thread whose answer is named by the path. `/hang` holds the connection
    until the proxy leaves it."""

    WAYS = ("ok", "chunked", "nothing", "reset", "half-head", "half-body", "half-reset",
            "half-chunk", "rubbish", "interim-reset", "hang")

    def __enter__(self):
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listening.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.listening.setblocking(False)
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.open, self.ended = {}, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join(PATIENCE)
        for sock in [*self.open, self.listening]:
            sock.close()
        self.selector.close()

    def run(self):
        while not self.ended.is_set():
            for key, _ in self.selector.select(0.1):
                if key.fileobj is self.listening:
                    self.accept()
                else:
                    self.read(key.fileobj)

    def accept(self):
        try:
            sock, _ = self.listening.accept()
        except OSError:
            return  # it was reset while it waited
        sock.setblocking(False)
        self.open[sock] = b""
        self.selector.register(sock, selectors.EVENT_READ)

    def drop(self, sock, hard=False):
        self.selector.unregister(sock)
        del self.open[sock]
        if hard:
            reset(sock)
        else:
            sock.close()

    def read(self, sock):
        try:
            piece = sock.recv(65536)
            if not piece:
                return self.drop(sock)
            if self.open[sock] is None:
                return None  # the body of what was answered
            self.open[sock] += piece
            head, mark, _ = self.open[sock].partition(b"\r\n\r\n")
            if mark:
                self.open[sock] = None if b"\r\nContent-Length:" in head else b""
                self.answer(sock, head.split(b" ", 2)[1].decode().lstrip("/"))
        except OSError:
            self.drop(sock)
        return None

    def answer(self, sock, way):
        said = {"ok": reply(), "chunked": CHUNKED + b"5\r\n12345\r\n0\r\n\r\n", "nothing": b"",
                "reset": b"", "half-head": b"HTTP/1.1 200 OK\r\nCont",
                "half-body": LONG + b"x" * 50_000, "half-reset": LONG + b"x" * 50_000,
                "half-chunk": CHUNKED + b"fff\r\n12345", "rubbish": b"rubbish\r\n\r\n",
                "interim-reset": b"HTTP/1.1 103 Hints\r\n\r\n",
                "hang": b""}[way]
        sock.send(said)
        if way in ("nothing", "half-head", "half-body", "half-chunk"):
            self.drop(sock)
        elif way in ("reset", "half-reset", "interim-reset", "rubbish"):
            self.drop(sock, hard=True)


class Round:
    """100 clients at once."""

    WAYS = ("reads", "reads", "closes", "resets", "resets-later", "half-closes", "half-head",
            "resets-in-body", "closes-in-body", "reads-a-little")

    def __init__(self, chance, connect):
        self.chance, self.clients = chance, []
        for _ in range(CONNECTIONS):
            way = chance.choice(self.WAYS)
            answer = chance.choice(Unsteady.WAYS if way not in ("reads", "reads-a-little") else
                                   Unsteady.WAYS[:-1])
            self.clients.append((connect(), way, answer))

    def run(self):
        chance = self.chance
        for sock, way, answer in self.clients:
            try:
                sock.sendall(self.words(way, answer))
            except OSError:
                pass  # refused by a proxy that did not wait for the body
        chance.shuffle(self.clients)
        for sock, way, _ in self.clients:
            self.end(sock, way)

    def words(self, way, answer):
        fields = f"Host: a\r\nX-Key: {self.chance.randrange(8)}\r\n"
        if way == "half-head":
            return f"GET /{answer} HTTP/1.1\r\n{fields}".encode()
        if "body" in way:
            return (f"POST /{answer} HTTP/1.1\r\n{fields}Content-Length: 100000\r\n\r\n".encode() +
                    b"x" * self.chance.choice((0, 10, 20_000)))
        return f"GET /{answer} HTTP/1.1\r\n{fields}\r\n".encode()

    def end(self, sock, way):
        try:
            if way == "reads":
                sock.shutdown(socket.SHUT_RD) if self.chance.random() < 0.1 else self.read(sock)
            elif way == "reads-a-little":
                sock.recv(10)
            elif way == "half-closes":
                sock.shutdown(socket.SHUT_WR)
            if way.startswith("resets") or self.chance.random() < 0.2:
                reset(sock)
        except OSError:
            pass
        sock.close()

    @staticmethod
    def read(sock):
        """Until a head and a little more has come, or the end."""
        got = b""
        while b"\r\n\r\n" not in got:
            piece = sock.recv(65536)
            if not piece:
                return
            got += piece


LIMITS = {"all": {"type": "inflight", "max": 60},
          "key": {"type": "inflight", "tag": "header", "key": "X-Key", "max": 8},
          "dry": {"type": "inflight", "max": 5, "dry_run": True},
          "up": {"type": "inflight", "max": 50, "step": "proxy_upstream"}}


class Aborts(unittest.TestCase):
    def figures(self):
        """The page, by a connection that is kept."""
        for _ in range(2):
            try:
                self.page.request("GET", "/")
                return json.loads(self.page.getresponse().read())
            except (http.client.HTTPException, OSError):
                self.page.close()
        raise AssertionError("the page of figures does not come")

    def assert_all_back(self, what):
        def is_empty():
            page = self.figures()
            return page["permits_held"] == 0 and page["connections"] == 1
        try:
            until(is_empty)
        except AssertionError as failed:
            raise AssertionError(f"{what}: {self.figures()}") from failed

    def assert_all_places_are_free(self, app, proxy):
        """Not by the figures: as many as the limits allow get in together, and not one more."""
        with Upstream({"/": (gate := Gate())}) as steady:
            proxy.reload(site(steady.port, LIMITS, basic=self.BASIC))
            clients = [proxy.connect() for _ in range(50)]
            for number, client in enumerate(clients):
                client.request(fields=[("X-Key", str(number % 8))])
            gate.hold(50)
            refused = proxy.ask(fields=[("X-Key", "other")])
            self.assertEqual((refused.status, refused.body),
                             (429, b"Plugin limit, exceed limit 51/50"))
            gate.opened.set()
            self.assertEqual({client.answer().status for client in clients}, {200})
            for client in clients:
                client.sock.close()
        proxy.reload(site(app.port, LIMITS, basic=self.BASIC))

    BASIC = {"threads": 2, "body_timeout": "5s"}

    def run_rounds(self, rounds, servers, wrap=lambda sock: sock):
        chance = random.Random(SEED)
        with Unsteady() as app, Proxy(site(app.port, LIMITS, basic=self.BASIC,
                                           servers=servers)) as proxy:
            self.page = http.client.HTTPConnection(*proxy.at["status"], timeout=PATIENCE)
            def connect():
                sock = socket.create_connection(proxy.at["web"], PATIENCE)
                return wrap(sock)
            counts = []
            for number in range(rounds):
                Round(chance, connect).run()
                self.assert_all_back(f"seed {SEED}, round {number}")
                if number in (20, rounds - 1):
                    until(lambda: self.figures()["upstreams"][0]["connections"] <= 128)
                    counts.append((proxy.descriptors() -
                                   self.figures()["upstreams"][0]["connections"],
                                   proxy.most_memory()))
            page = self.figures()
            (files, memory), (files_after, memory_after) = counts
            self.assertLessEqual(files_after, files)
            self.assertLess(memory_after - memory, 16 << 20)
            if not servers:
                self.assert_all_places_are_free(app, proxy)
                self.assert_all_back("after the last")
            self.page.close()
            self.assertEqual(proxy.stop(), 0)
            return page

    def test_100_connections_that_end_in_any_way_leave_no_place_and_no_descriptor(self):
        page = self.run_rounds(ROUNDS, None)
        # All of it has happened, and often.
        self.assertGreater(page["requests"], ROUNDS * CONNECTIONS // 2)
        self.assertGreater(page["answered_by_plugins"], ROUNDS)
        self.assertGreater(page["upstream_failures"], ROUNDS)
        self.assertGreater(page["upstreams"][0]["requests"], ROUNDS * 10)

    def test_the_same_over_TLS(self):
        with tempfile.TemporaryDirectory(prefix="weir-proxy-") as folder:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                            "/CN=localhost", "-keyout", folder + "/key.pem",
                            "-out", folder + "/cert.pem"],
                           check=True, capture_output=True, timeout=PATIENCE)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.run_rounds(max(25, ROUNDS // 20), {"web": {
                "tls_cert": folder + "/cert.pem", "tls_key": folder + "/key.pem"}},
                context.wrap_socket)

    def test_an_upload_that_its_client_leaves_ends_at_the_upstream_too(self):
        with Upstream() as app, Proxy(site(app.port, LIMITS)) as proxy:
            for count, way in enumerate(("close", "reset"), 1):
                with proxy.connect() as client:
                    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" +
                                b"x" * 50_000)
                    until(lambda: len(app.seen) == count and app.seen[-1].size == 50_000,
                          what="the half")
                    if way == "reset":
                        client.reset()
                until(lambda: app.seen[-1].link.sock.fileno() < 0, what="the end of the link")
                self.assertFalse(app.seen[-1].complete)
                until(lambda: proxy.status()["permits_held"] == 0)
            self.assertEqual(len(app.seen), 2)

    def test_a_client_that_does_not_read_is_left_after_write_timeout(self):
        sent = threading.Event()

        def down(_, link):
            link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            try:
                for _ in range(100):
                    link.send(b"x" * 1_000_000)
            finally:
                sent.set()
        with Upstream({"/": down}) as app, Proxy(site(app.port, LIMITS, basic={
                "write_timeout": "300ms"})) as proxy, proxy.connect() as client:
            client.request("/")
            until(lambda: proxy.status()["permits_held"] == 3)
            until(lambda: proxy.status()["permits_held"] == 0)
            self.assertTrue(sent.wait(PATIENCE))

    def test_a_descriptor_that_is_missing_ends_one_exchange_and_not_the_program(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            subprocess.run(["prlimit", f"--pid={proxy.process.pid}", "--nofile=40:40"], check=True,
                           timeout=PATIENCE)
            clients = [socket.create_connection(proxy.at["web"], PATIENCE) for _ in range(60)]
            for client in clients:
                client.close()
            self.assertEqual(until(lambda: proxy.ask().status == 200), True)
            self.assertEqual(proxy.stop(signal.SIGTERM), 0)


if __name__ == "__main__":
    proxied.PROGRAM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

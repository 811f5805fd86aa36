# SPDX-License-Identifier: BSL-1.0
"""proxy_framing.test.py PROGRAM: where a message ends, as weir-proxy reads it and nobody else can.

What two readers could understand differently is refused, in requests and in responses; all else
goes through as it came, of any size, with little memory.
"""

import hashlib
import os
import socket
import sys
import time
import unittest

import proxied
from proxied import PATIENCE, Gate, Proxy, Upstream, reply, site, until

ONE = {"threads": 1}
END = b"\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
MEGABYTE = 1 << 20
LARGE = 200 * MEGABYTE
PIECE = os.urandom(MEGABYTE)


def post(*lines, body=b""):
    return b"\r\n".join([b"POST /form HTTP/1.1", b"Host: a", *lines, b"", b""]) + body


def digest_of(size):
    made = hashlib.sha256()
    for _ in range(size // MEGABYTE):
        made.update(PIECE)
    return made.hexdigest()


class Smuggling(unittest.TestCase):
    """RFC 9112 section 11.2. After each probe stands a request that must not be one."""

    # Nothing of these may reach the upstream.
    REFUSED_HEADS = [
        ("two lengths that differ", 400,
         post(b"Content-Length: 5", b"Content-Length: 6", body=b"12345")),
        ("two lengths that agree", 400,
         post(b"Content-Length: 5", b"Content-Length: 5", body=b"12345")),
        ("a list of lengths", 400, post(b"Content-Length: 5, 6", body=b"12345")),
        ("a list of equal lengths", 400, post(b"Content-Length: 5, 5", body=b"12345")),
        ("a length with a sign", 400, post(b"Content-Length: +5", body=b"12345")),
        ("a negative length", 400, post(b"Content-Length: -5", body=b"12345")),
        ("a hexadecimal length", 400, post(b"Content-Length: 0x5", body=b"12345")),
        ("a length with a blank inside", 400, post(b"Content-Length: 1 2", body=b"12345")),
        ("a length of nothing", 400, post(b"Content-Length:", body=b"12345")),
        ("a length beyond 64 bits", 400, post(b"Content-Length: 18446744073709551617", body=b"1")),
        ("a length and a coding", 400,
         post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
        ("a coding and a length", 400,
         post(b"Transfer-Encoding: chunked", b"Content-Length: 5", body=b"0\r\n\r\n")),
        ("two codings", 400,
         post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
        ("identity beside chunked", 501,
         post(b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
        ("chunked, identity", 501,
         post(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n")),
        ("identity, chunked", 501,
         post(b"Transfer-Encoding: identity, chunked", body=b"0\r\n\r\n")),
        ("gzip, chunked", 501, post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n")),
        ("xchunked", 501, post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n")),
        ("chunked in quotes", 501, post(b'Transfer-Encoding: "chunked"', body=b"0\r\n\r\n")),
        ("a coding of nothing", 501, post(b"Transfer-Encoding:", body=b"0\r\n\r\n")),
        ("a vertical tab before chunked", 400,
         post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n")),
        ("a coding in HTTP/1.0", 400,
         b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("a blank before the colon", 400, post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n")),
        ("a tab before the colon", 400, post(b"Content-Length\t: 5", body=b"12345")),
        ("a folded line", 400, post(b"X-A: 1", b" 2")),
        ("a folded coding", 400, post(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n")),
        ("a folded first line", 400, b"GET / HTTP/1.1\r\n Host: a\r\nHost: a\r\n\r\n"),
        ("a lone LF after a field", 400, b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"),
        ("a lone LF after the first line", 400, b"GET / HTTP/1.1\nHost: a\r\n\r\n"),
        ("lone LFs as the end", 400, b"GET / HTTP/1.1\r\nHost: a\r\n\n"),
        ("a lone CR in a value", 400, b"GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n"),
        ("a lone CR in a name", 400, b"GET / HTTP/1.1\r\nHost: a\r\nX\r: y\r\n\r\n"),
        ("CR CR LF", 400, b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"),
        ("a NUL in a value", 400, post(b"X-A: 1\x002")),
        ("a NUL in a name", 400, post(b"X-\x00A: 1")),
        ("a NUL in the path", 400, b"GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("an escape in a value", 400, post(b"X-A: \x1b[2J")),
        ("a Connection of no token", 400, post(b"Connection: a b")),
        ("a name of nothing", 400, post(b": 1")),
        ("a line without a colon", 400, post(b"X-A")),
        ("a name with a blank", 400, post(b"X A: 1")),
        ("a name in UTF-8", 400, post("X-É: 1".encode())),
        ("no Host", 400, b"GET / HTTP/1.1\r\n\r\n"),
        ("two Hosts", 400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        ("a Host with a path", 400, b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
        ("a Host with a user", 400, b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"),
        ("two blanks in the first line", 400, b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a tab in the first line", 400, b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a blank in the path", 400, b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a blank at the end of it", 400, b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
        ("no version", 400, b"GET /\r\nHost: a\r\n\r\n"),
        ("a blank before the method", 400, b" GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a method that is no token", 400, b"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a path without a slash", 400, b"GET index.html HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a fragment", 400, b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a raw byte in the path", 400, b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("http in small letters", 400, b"GET / http/1.1\r\nHost: a\r\n\r\n"),
        ("HTTP/1.10", 400, b"GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
        ("HTTP/1.2", 505, b"GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
        ("HTTP/2.0", 505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        ("HTTP/0.9", 505, b"GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
        ("the preface of HTTP/2", 505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("an expectation that we do not know", 417,
         post(b"Expect: 200-ok", b"Content-Length: 1", body=b"1")),
        ("a head of 20,000 bytes", 431, post(b"X-A: " + b"a" * 20_000)),
        ("3,000 fields", 431, post(*[b"a: b"] * 3_000)),
        ("a path of 20,000 bytes", 431, b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("20,000 bytes without a line end", 431, b"a" * 20_000),
    ]

    # The request itself is begun; where its body goes wrong it ends.
    BROKEN_BODIES = [
        ("no size", b"\r\n12345\r\n0\r\n\r\n"),
        ("a size that is no number", b"g\r\n12345\r\n0\r\n\r\n"),
        ("a size with a sign", b"+5\r\n12345\r\n0\r\n\r\n"),
        ("a negative size", b"-5\r\n12345\r\n0\r\n\r\n"),
        ("a size with 0x", b"0x5\r\n12345\r\n0\r\n\r\n"),
        ("a blank before a size", b" 5\r\n12345\r\n0\r\n\r\n"),
        ("a blank after a size", b"5 \r\n12345\r\n0\r\n\r\n"),
        ("a size beyond 64 bits", b"10000000000000005\r\n12345\r\n0\r\n\r\n"),
        ("a size of many zeroes", b"0" * 100 + b"5\r\n12345\r\n0\r\n\r\n"),
        ("a lone LF after a size", b"5\n12345\r\n0\r\n\r\n"),
        ("a lone LF after a chunk", b"5\r\n12345\n0\r\n\r\n"),
        ("a lone CR after a size", b"5\r12345\r\n0\r\n\r\n"),
        ("a chunk longer than its size", b"4\r\n12345\r\n0\r\n\r\n"),
        ("a lone LF in an extension", b"5;a\n12345\r\n0\r\n\r\n"),
        ("a lone CR in an extension", b"5;a\rb\r\n12345\r\n0\r\n\r\n"),
        ("a NUL in an extension", b"5;a\x00b\r\n12345\r\n0\r\n\r\n"),
        ("an extension of 10,000 bytes", b"5;" + b"a" * 10_000 + b"\r\n12345\r\n0\r\n\r\n"),
        ("a lone LF as the end", b"5\r\n12345\r\n0\r\n\n"),
        ("a folded trailer", b"5\r\n12345\r\n0\r\nX: 1\r\n 2\r\n\r\n"),
        ("a blank before a trailer's colon", b"5\r\n12345\r\n0\r\nX : 1\r\n\r\n"),
        ("a trailer that is a length", b"5\r\n12345\r\n0\r\nContent-Length: 1\r\n\r\n"),
        ("a trailer that is a coding", b"5\r\n12345\r\n0\r\nTransfer-encoding: x\r\n\r\n"),
        ("a trailer that is a Host", b"5\r\n12345\r\n0\r\nHOST: b\r\n\r\n"),
        ("a trailer that is Connection", b"5\r\n12345\r\n0\r\nConnection: a\r\n\r\n"),
        ("trailers of 10,000 bytes", b"0\r\nX: " + b"a" * 10_000 + b"\r\n\r\n"),
    ]

    def test_a_head_that_could_be_read_in_two_ways_is_refused_and_ends_the_connection(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            for name, status, probe in self.REFUSED_HEADS:
                for pieces in ([probe + SMUGGLED], [probe, SMUGGLED]):
                    with self.subTest(name, pieces=len(pieces)), proxy.connect() as client:
                        for piece in pieces:
                            client.send(piece)
                        answer = client.answer()
                        self.assertEqual(answer.status, status)
                        self.assertEqual(answer.fields.one("Connection"), "close")
                        self.assertTrue(client.closed())
            self.assertEqual(app.taken(), b"")

    def test_a_probe_that_comes_byte_by_byte_is_refused_as_well(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            for name, status, probe in self.REFUSED_HEADS:
                if len(probe) > 200:
                    continue
                with self.subTest(name), proxy.connect() as client:
                    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    try:
                        for byte in probe:
                            client.send(bytes([byte]))
                    except (ConnectionResetError, BrokenPipeError):
                        pass  # it was refused before its end
                    self.assertEqual(client.answer().status, status)
            self.assertEqual(app.taken(), b"")

    def test_a_body_that_is_broken_ends_both_connections_and_no_second_request_comes(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            for at_once in (True, False):
                for name, body in self.BROKEN_BODIES:
                    with self.subTest(name, at_once=at_once), proxy.connect() as client:
                        before = len(app.seen)
                        head = post(b"Transfer-Encoding: chunked")
                        if at_once:
                            client.send(head + body + SMUGGLED)
                        else:
                            client.send(head)
                            until(lambda: len(app.seen) > before, what="the head")
                            client.send(body + SMUGGLED)
                        self.assertEqual(client.answer().status, 400)
                        self.assertTrue(client.closed())
                        for request in app.seen[before:]:
                            until(lambda: request.link.sock.fileno() < 0, what="the link's end")
                            self.assertFalse(request.complete)
            self.assertNotIn("/smuggled", app.targets())

    def test_a_body_that_looks_like_a_request_is_a_body(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy, proxy.connect() as client:
            for _ in range(3):
                client.send(post(b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED))
                self.assertEqual(client.answer().status, 200)
                client.send(post(b"Transfer-Encoding: chunked",
                                 body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)))
                self.assertEqual(client.answer().status, 200)
            self.assertEqual(app.targets(), ["/form"] * 6)
            self.assertEqual([request.body for request in app.seen], [SMUGGLED] * 6)

    def test_a_refused_request_takes_its_body_with_it(self):
        with Upstream() as app, Proxy(site(app.port, {"none": {"max": 0}}, locations={
                "no": {"path": "/form"}, "all": {"plugins": []}})) as proxy:
            for body in (SMUGGLED, SMUGGLED * 1000):
                with proxy.connect() as client:
                    client.send(post(b"Content-Length: %d" % len(body), body=body[:30]))
                    self.assertEqual(client.answer().status, 429)
                    try:
                        client.send(body[30:] + b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
                        rest = client.rest()
                    except (ConnectionResetError, BrokenPipeError):
                        rest = b""
                    self.assertNotIn(b"200", rest)
            self.assertEqual(app.taken(), b"")

    def test_what_is_odd_but_has_one_meaning_is_served(self):
        rows = [
            ("an empty line before it", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            ("no blank after a colon", b"GET / HTTP/1.1\r\nHost:a\r\n\r\n"),
            ("blanks around a value", b"GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n"),
            ("an absolute target", b"GET http://a/ HTTP/1.1\r\nHost: other\r\n\r\n"),
            ("names in capitals", b"POST / HTTP/1.1\r\nHOST: a\r\nCONTENT-LENGTH: 0\r\n\r\n"),
            ("leading zeroes", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0005\r\n\r\n12345"),
            ("CHUNKED", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n"
                        b"0\r\n\r\n"),
            ("extensions", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"5;a=\"b\"\r\n12345\r\n0;z\r\n\r\n"),
            ("a value in UTF-8", "GET / HTTP/1.1\r\nHost: a\r\nX: É\r\n\r\n".encode()),
            ("a method nobody knows", b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n"),
            ("an asterisk is no path of ours", b"OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ]
        with Upstream() as app, Proxy(site(app.port)) as proxy, proxy.connect() as client:
            for name, request in rows:
                client.send(request)
                self.assertEqual(client.answer().status, 200, name)
            self.assertEqual(len(app.seen), len(rows))
            self.assertEqual([request.fields.all("Host") for request in app.seen],
                             [["a"]] * len(rows))
            self.assertEqual({len(request.fields.all("Content-Length")) for request in app.seen},
                             {0, 1})

    def test_fields_of_one_hop_stay_there_and_their_names_hide_nothing_else(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            proxy.ask(fields=[("Connection", "X-Own, keep-alive"), ("X-Own", "1"),
                              ("Keep-Alive", "9"), ("TE", "trailers"), ("Upgrade", "h2c"),
                              ("HTTP2-Settings", "AAMA"),
                              ("Proxy-Authorization", "Basic eDp5"), ("X-Kept", "2")])
            # Framing and the caller's address are not of those that Connection can take away.
            proxy.ask("/form", "POST", [("Connection", "Content-Length, X-Forwarded-For, Host")],
                      body=SMUGGLED)
            first, second = app.seen
            self.assertFalse({"x-own", "keep-alive", "te", "upgrade", "http2-settings",
                              "proxy-authorization"} & first.fields.names())
            self.assertEqual(first.fields.one("X-Kept"), "2")
            self.assertEqual((second.body, second.fields.one("X-Forwarded-For"),
                              second.fields.one("Host")), (SMUGGLED, "127.0.0.1", "test.example"))

    def test_a_head_may_be_as_long_as_the_setting_says(self):
        with Upstream() as app, \
                Proxy(site(app.port, basic={"max_header_bytes": 60_000})) as proxy:
            self.assertEqual(proxy.ask(fields=[("X-A", "a" * 59_000)]).status, 200)
            self.assertEqual(proxy.ask(fields=[("X-A", "a" * 61_000)]).status, 431)
            self.assertEqual(len(app.seen), 1)


class Responses(unittest.TestCase):
    BROKEN = [
        ("two lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345"),
        ("a length and a coding", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                                  b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("a coding that is not ours", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n12345"),
        ("a lone LF", b"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n12345"),
        ("a folded line", b"HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\nContent-Length: 5\r\n\r\n12345"),
        ("a NUL", b"HTTP/1.1 200 OK\r\nX: \x00\r\nContent-Length: 5\r\n\r\n12345"),
        ("no status", b"HTTP/1.1 OK\r\nContent-Length: 5\r\n\r\n12345"),
        ("status 99", b"HTTP/1.1 099 No\r\nContent-Length: 5\r\n\r\n12345"),
        ("status 600", b"HTTP/1.1 600 No\r\nContent-Length: 5\r\n\r\n12345"),
        ("chunks in HTTP/1.0", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("HTTP/2.0", b"HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\n12345"),
        ("no HTTP", b"220 mail.example ESMTP\r\n"),
        ("an upgrade nobody asked for", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
        ("a head of 40,000 bytes", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40_000 + b"\r\n\r\n"),
        ("nothing", b""),
        ("half a head", b"HTTP/1.1 200 OK\r\nContent-Le"),
    ]

    def test_a_response_that_could_be_read_in_two_ways_is_a_502_and_its_link_is_dropped(self):
        for name, answer in self.BROKEN:
            def broken(_, link):
                link.send(answer)
                link.sock.shutdown(socket.SHUT_WR)
                link.rest()
            with self.subTest(name), Upstream({"/bad": broken}) as app, \
                    Proxy(site(app.port)) as proxy, proxy.connect() as client:
                self.assertEqual(client.ask("/bad").status, 502)
                self.assertEqual(client.ask("/good").body, b"ok\n")
                self.assertEqual(len(app.links), 2)
                self.assertEqual(proxy.status()["upstream_failures"], 1)

    def test_bytes_after_a_response_are_no_response_to_the_next_request(self):
        poison = reply(body=b"poison")
        answers = {
            "/twice": lambda *_: reply(body=b"first") + poison,
            "/chunked": lambda *_: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                   b"5\r\nfirst\r\n0\r\n\r\n" + poison,
            "/head": lambda *_: reply(body=poison),
            "/204": lambda *_: b"HTTP/1.1 204 No\r\n\r\n" + poison,
            "/304": lambda *_: b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n" + poison,
        }
        with Upstream(answers) as app, Proxy(site(app.port, basic=ONE)) as proxy, \
                proxy.connect() as client:
            for path in answers:
                for _ in range(3):
                    answer = client.ask(path, "HEAD" if path == "/head" else "GET")
                    self.assertIn(answer.body, (b"first", b""))
                    self.assertEqual(client.ask("/next").body, b"ok\n", path)

    def test_what_an_upstream_says_unasked_ends_its_link(self):
        with Upstream() as app, Proxy(site(app.port, basic=ONE)) as proxy:
            for n in range(5):
                self.assertEqual(proxy.ask().body, b"ok\n")
                app.links[n].send(reply(body=b"poison"))
                until(lambda: proxy.status()["upstreams"][0]["connections"] == 0)
            self.assertEqual(len(app.links), 5)

    def test_a_body_that_breaks_off_breaks_off_for_the_client_too(self):
        heads = {"/length": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
                 "/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
                 "/in-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n12345",
                 "/bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                               b"5\r\n12345\r\nnot a size\r\n"}
        for path, words in heads.items():
            for way in ("end", "reset"):
                def broken(_, link):
                    link.send(words)
                    if way == "reset":
                        link.reset()
                with self.subTest(path, way=way), Upstream({path: broken}) as app, \
                        Proxy(site(app.port)) as proxy, proxy.connect() as client:
                    client.request(path)
                    rest = client.rest()
                    if rest and rest != b"<reset>":
                        self.assertTrue(rest.startswith((b"HTTP/1.1 200", b"HTTP/1.1 502")), rest)
                    if b" 200 " in rest:
                        self.assertNotIn(b"0\r\n\r\n", rest.partition(END)[2])
                        body = rest.partition(END)[2]
                        self.assertLess(len(body.replace(b"<reset>", b"")), 30)
                    until(lambda: proxy.status()["permits_held"] == 0)
                    self.assertEqual(proxy.ask("/good").status, 200)

    def test_a_body_that_ends_with_its_connection_goes_on_in_chunks(self):
        def bare(_, link):
            link.send(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 100_000)
        with Upstream({"/": bare}) as app, Proxy(site(app.port)) as proxy:
            with proxy.connect() as client:
                for _ in range(2):
                    answer = client.ask()
                    self.assertEqual(answer.body, b"x" * 100_000)
                    self.assertEqual(answer.fields.one("Transfer-Encoding"), "chunked")
            with proxy.connect() as old:
                old.send(b"GET / HTTP/1.0\r\n\r\n")
                head, _, body = old.rest().partition(END)
                self.assertNotIn(b"chunked", head)
                self.assertEqual(body, b"x" * 100_000)

    def test_a_reset_is_not_the_end_of_a_body_that_ends_with_its_connection(self):
        def broken(_, link):
            link.send(b"HTTP/1.1 200 OK\r\n\r\n12345")
            gate(None, None)
            link.reset()
        gate = Gate()
        with Upstream({"/": broken}) as app, Proxy(site(app.port)) as proxy, \
                proxy.connect() as client:
            client.request("/")
            self.assertEqual(client.head()[0], 200)
            self.assertEqual(client.until(b"12345\r\n"), b"5\r\n12345\r\n")
            gate.opened.set()
            self.assertNotIn(b"0\r\n", client.rest())

    def test_chunks_of_the_upstream_are_bare_for_HTTP_1_0(self):
        def chunked(_, __):
            return (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"5;x=y\r\n12345\r\n3\r\n678\r\n0\r\nX-Sum: 1\r\n\r\n")
        with Upstream({"/": chunked}) as app, Proxy(site(app.port)) as proxy:
            with proxy.connect() as old:
                old.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                head, _, body = old.rest().partition(END)
                self.assertNotIn(b"chunked", head)
                self.assertEqual(body, b"12345678")
            answer = proxy.ask()
            self.assertEqual((answer.body, answer.fields.one("trailer: X-Sum")), (b"12345678", "1"))

    def test_interim_responses_go_through_and_HTTP_1_0_gets_none(self):
        hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
        with Upstream({"/": lambda *_: hints + hints + reply()}) as app, \
                Proxy(site(app.port)) as proxy:
            answer = proxy.ask()
            self.assertEqual([(status, fields.one("Link")) for status, fields in answer.interim],
                             [(103, "</a.css>")] * 2)
            self.assertEqual(answer.body, b"ok\n")
            with proxy.connect() as old:
                old.send(b"GET / HTTP/1.0\r\n\r\n")
                self.assertEqual(old.answer().interim, [])

    def test_HEAD_204_and_304_have_no_body_and_keep_the_connection(self):
        answers = {
            "/head": lambda *_: b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
            "/204": lambda *_: b"HTTP/1.1 204 No Content\r\n\r\n",
            "/304": lambda *_: b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n",
        }
        with Upstream(answers) as app, Proxy(site(app.port, basic=ONE)) as proxy, \
                proxy.connect() as client:
            for _ in range(3):
                head = client.ask("/head", "HEAD")
                self.assertEqual((head.status, head.fields.one("Content-Length")), (200, "1000"))
                none = client.ask("/204")
                self.assertEqual((none.status, none.fields.one("Content-Length"),
                                  none.fields.one("Transfer-Encoding")), (204, None, None))
                same = client.ask("/304")
                self.assertEqual((same.status, same.fields.one("Content-Length")), (304, "1000"))
            self.assertEqual(len(app.links), 1)


class Streaming(unittest.TestCase):
    """Bodies far larger than what the program may hold."""

    MOST_MEMORY = 24 * MEGABYTE  # more than before it

    def test_200_megabytes_go_up_and_down_with_little_memory(self):
        def down(_, link):
            link.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
            for _ in range(LARGE // MEGABYTE):
                link.send(PIECE)
        with Upstream({"/down": down}) as app, Proxy(site(app.port)) as proxy:
            proxy.ask()
            before, expected = proxy.most_memory(), digest_of(LARGE)
            with proxy.connect() as client:
                client.send(post(b"Content-Length: %d" % LARGE))
                for _ in range(LARGE // MEGABYTE):
                    client.send(PIECE)
                self.assertEqual(client.answer().status, 200)
                self.assertEqual((app.seen[-1].size, app.seen[-1].digest.hexdigest()),
                                 (LARGE, expected))
                client.request("/down")
                self.assertEqual(client.head()[0], 200)
                got = hashlib.sha256()
                for piece in client.pieces(LARGE):
                    got.update(piece)
                self.assertEqual(got.hexdigest(), expected)
            self.assertLess(proxy.most_memory() - before, self.MOST_MEMORY)

    def test_chunks_go_both_ways_with_their_trailers(self):
        size = 20 * MEGABYTE

        def echo(request, link):
            link.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
            for _ in range(size // MEGABYTE):
                link.send(b"%X\r\n%s\r\n" % (MEGABYTE, PIECE))
            link.send(b"0\r\nX-Sum: %s\r\n\r\n" % request.digest.hexdigest().encode())
            return b""
        with Upstream({"/form": echo}) as app, Proxy(site(app.port)) as proxy, \
                proxy.connect() as client:
            for _ in range(2):
                client.send(post(b"Transfer-Encoding: chunked", b"Trailer: X-Name"))
                for _ in range(size // 1_000):
                    client.send(b"3e8\r\n" + PIECE[:1_000] + b"\r\n")
                client.send(b"0\r\nX-Name: v\r\n\r\n")
                answer = client.answer()
                self.assertEqual(hashlib.sha256(answer.body).hexdigest(), digest_of(size))
                got = app.seen[-1]
                self.assertEqual((got.size, got.trailers), (size // 1_000 * 1_000, ["X-Name: v"]))
                self.assertEqual(answer.fields.one("trailer: X-Sum"), got.digest.hexdigest())
            self.assertEqual(len(app.links), 1)

    def test_a_client_that_does_not_read_holds_the_upstream_back(self):
        sent = [0]

        def down(_, link):
            link.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
            for _ in range(LARGE // MEGABYTE):
                link.send(PIECE)
                sent[0] += MEGABYTE
        with Upstream({"/down": down}) as app, Proxy(site(app.port)) as proxy:
            proxy.ask()
            before = proxy.most_memory()
            with proxy.connect() as client:
                client.request("/down")
                self.assertEqual(client.head()[0], 200)
                last = [-1, time.monotonic()]

                def stands_still():
                    if sent[0] != last[0]:
                        last[:] = [sent[0], time.monotonic()]
                    return time.monotonic() - last[1] > 0.3
                until(stands_still, what="a standstill")
                self.assertLess(sent[0], LARGE // 4)  # what the system's buffers hold
                self.assertLess(proxy.most_memory() - before, self.MOST_MEMORY)
                self.assertEqual(proxy.ask().status, 200)
                self.assertEqual(sum(map(len, client.pieces(LARGE))), LARGE)

    def test_an_upstream_that_does_not_read_holds_the_client_back(self):
        gate = Gate()

        def greet(request, link):
            if request.target == "/form":
                gate(None, None)
        with Upstream(greet=greet) as app, \
                Proxy(site(app.port)) as proxy, proxy.connect() as client:
            proxy.ask()
            before = proxy.most_memory()
            client.send(post(b"Content-Length: %d" % LARGE))
            client.sock.settimeout(0.3)
            count = 0
            try:
                while count < LARGE:
                    count += client.sock.send(PIECE)
            except TimeoutError:
                pass
            self.assertLess(count, LARGE // 4)
            self.assertLess(proxy.most_memory() - before, self.MOST_MEMORY)
            client.sock.settimeout(PATIENCE)
            gate.opened.set()
            while count < LARGE:
                count += client.sock.send(PIECE[:LARGE - count])
            self.assertEqual(client.answer().status, 200)
            self.assertEqual(app.seen[-1].size, LARGE)

    def test_both_bodies_flow_at_once(self):
        def echo(request, link):
            if request.target != "/echo":
                return
            link.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for piece in link.chunks([]):
                link.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            link.send(b"0\r\n\r\n")
            raise OSError("all is said")
        with Upstream(greet=echo) as app, Proxy(site(app.port)) as proxy, \
                proxy.connect() as client:
            client.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.assertEqual(client.head()[0], 200)
            for n in range(50):
                client.send(b"2\r\n%02d\r\n" % n)
                self.assertEqual(client.until(b"\r\n"), b"2\r\n")
                self.assertEqual(client.until(b"\r\n"), b"%02d\r\n" % n)
            client.send(b"0\r\n\r\n")
            self.assertEqual(client.until(END), b"0\r\n\r\n")

    def test_a_response_may_come_before_the_body_of_the_request_has_gone(self):
        def early(request, link):
            if request.target == "/form":
                link.send(reply(413, body=b"too large\n"))
                link.sock.shutdown(socket.SHUT_WR)
        with Upstream(greet=early) as app, Proxy(site(app.port)) as proxy:
            with proxy.connect() as client:
                client.send(post(b"Content-Length: 1000000", body=b"x" * 1000))
                answer = client.answer()
                self.assertEqual((answer.status, answer.body), (413, b"too large\n"))
                self.assertEqual(answer.fields.one("Connection"), "close")
            self.assertEqual(proxy.ask().status, 200)

    def test_100_continue_comes_from_the_upstream_and_not_before_a_refusal(self):
        limits = {"one": {"max": 1, "interval": "1h"}}
        with Upstream() as app, Proxy(site(app.port, limits)) as proxy:
            with proxy.connect() as client:
                client.send(post(b"Expect: 100-continue", b"Content-Length: 5"))
                self.assertEqual(client.head()[0], 100)
                client.send(b"12345")
                self.assertEqual(client.answer().status, 200)
            with proxy.connect() as client:
                client.send(post(b"Expect: 100-continue", b"Content-Length: 5"))
                answer = client.answer()
                self.assertEqual((answer.status, answer.interim), (429, []))
            self.assertEqual([request.body for request in app.seen], [b"12345"])


class Connections(unittest.TestCase):
    def test_both_sides_keep_their_connections(self):
        with Upstream() as app, Proxy(site(app.port, basic=ONE)) as proxy:
            for _ in range(3):
                with proxy.connect() as client:
                    for n in range(20):
                        method = "POST" if n % 2 else "GET"
                        answer = client.ask(f"/{n}", method, body=b"x" * (n % 2))
                        self.assertIsNone(answer.fields.one("Connection"))
            self.assertEqual((len(app.links), len(app.seen)), (1, 60))

    def test_a_link_that_the_upstream_will_not_keep_ends_and_the_client_keeps_its_own(self):
        ends = (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n",
                b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
        stays = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nok\n"
        for answer, links in ((ends[0], 3), (ends[1], 3), (stays, 1)):
            with Upstream({"/": lambda *_: answer}) as app, \
                    Proxy(site(app.port, basic=ONE)) as proxy, proxy.connect() as client:
                for _ in range(3):
                    got = client.ask()
                    self.assertEqual((got.body, got.fields.one("Connection")), (b"ok\n", None))
                self.assertEqual(len(app.links), links)

    def test_fields_go_through_as_they_came_and_a_Date_is_added_if_there_is_none(self):
        cookies = [("Set-Cookie", "a=1"), ("sEt-cOOkie", "b=2, c"), ("X-Empty", "")]
        with Upstream({"/a": lambda *_: reply(fields=cookies),
                       "/b": lambda *_: reply(fields=[("Date", "Sat, 29 Nov 2025 00:00:00 GMT")])}
                      ) as app, Proxy(site(app.port)) as proxy:
            fields = proxy.ask("/a", fields=cookies).fields
            self.assertEqual([each for each in fields if each in cookies], cookies)
            self.assertRegex(fields.one("Date"), r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$")
            self.assertEqual([each for each in app.seen[0].fields if each in cookies], cookies)
            self.assertEqual(proxy.ask("/b").fields.all("Date"), ["Sat, 29 Nov 2025 00:00:00 GMT"])

    def test_requests_that_come_together_are_answered_in_their_order(self):
        with Upstream({f"/{n}": lambda request, _: reply(body=request.target.encode())
                       for n in range(100)}) as app, \
                Proxy(site(app.port)) as proxy, proxy.connect() as client:
            client.send(b"".join(b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" % n
                                 for n in range(100)))
            self.assertEqual([client.answer().body for _ in range(100)],
                             [b"/%d" % n for n in range(100)])

    def test_Connection_close_and_HTTP_1_0_end_it(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            for request, kept in (
                    (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", False),
                    (b"GET / HTTP/1.0\r\n\r\n", False),
                    (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True)):
                with proxy.connect() as client:
                    client.send(request)
                    answer = client.answer()
                    self.assertEqual((answer.status, answer.body), (200, b"ok\n"))
                    if kept:
                        self.assertEqual(answer.fields.one("Connection"), "keep-alive")
                        self.assertEqual(client.ask().status, 200)
                    else:
                        self.assertEqual(answer.fields.one("Connection"), "close")
                        self.assertTrue(client.closed())

    def test_a_link_that_the_upstream_closed_while_it_was_idle_is_not_used(self):
        with Upstream() as app, Proxy(site(app.port, basic=ONE)) as proxy:
            for n in range(10):
                self.assertEqual(proxy.ask("/form", "POST", body=b"x").status, 200)
                app.links[n].sock.shutdown(socket.SHUT_RDWR)
                until(lambda: proxy.status()["upstreams"][0]["connections"] == 0)
            self.assertEqual((len(app.links), len(app.seen)), (10, 10))

    def test_a_kept_link_that_ends_under_a_request_is_tried_once_more_if_that_is_safe(self):
        def ends_second(request, link):
            # The second request of a link is read, and the link ends without an answer.
            if sum(1 for each in app.seen if each.link is link) > 1:
                return None
            return reply()
        for method, body, status, times in (("GET", b"", 200, 2), ("HEAD", b"", 200, 2),
                                            ("DELETE", b"", 200, 2), ("POST", b"x", 502, 1),
                                            ("PUT", b"x", 502, 1), ("POST", b"", 502, 1)):
            with self.subTest(method, body=body), Upstream({"/": ends_second}) as app, \
                    Proxy(site(app.port, basic=ONE)) as proxy:
                self.assertEqual(proxy.ask().status, 200)
                self.assertEqual(proxy.ask("/", method, body=body).status, status)
                self.assertEqual(len(app.seen), 1 + times)

    def test_a_new_link_that_ends_is_no_reason_to_ask_again(self):
        with Upstream({"/": lambda *_: None}) as app, Proxy(site(app.port)) as proxy:
            self.assertEqual(proxy.ask().status, 502)
            self.assertEqual(len(app.seen), 1)

    def test_a_request_is_tried_once_more_and_not_for_ever(self):
        def greet(request, link):
            if request.target == "/end":
                raise OSError("the link ends")
        with Upstream(greet=greet) as app, Proxy(site(app.port, basic=ONE)) as proxy:
            self.assertEqual(proxy.ask().status, 200)
            self.assertEqual(proxy.ask("/end").status, 502)
            self.assertEqual(app.targets(), ["/", "/end", "/end"])

    def test_who_is_slow_is_not_waited_for(self):
        gate = Gate()
        rows = [("header_timeout", b"GET / HTTP/1.1\r\nHo", 408),
                ("body_timeout", post(b"Content-Length: 10", body=b"12345"), 408),
                ("response_timeout", b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", 504),
                ("idle_timeout", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200)]
        for setting, words, status in rows:
            times = {setting: "300ms"}
            where = {"up": times} if setting == "response_timeout" else {"basic": times}
            with self.subTest(setting), Upstream({"/slow": gate}) as app, \
                    Proxy(site(app.port, **where)) as proxy, proxy.connect() as client:
                start = time.monotonic()
                client.send(words)
                self.assertEqual(client.answer().status, status)
                if setting != "response_timeout":
                    self.assertTrue(client.closed())
                self.assertLess(time.monotonic() - start, 5)
        gate.opened.set()

    def test_a_head_that_comes_byte_by_byte_has_no_more_time_than_another(self):
        with Upstream() as app, \
                Proxy(site(app.port, basic={"header_timeout": "300ms"})) as proxy, \
                proxy.connect() as client:
            start = time.monotonic()
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
            client.sock.settimeout(0.05)
            while True:
                self.assertLess(time.monotonic() - start, 5)
                try:
                    client.send(b"a")
                    client.more()
                    break
                except TimeoutError:
                    continue
            client.sock.settimeout(PATIENCE)
            self.assertEqual(client.answer().status, 408)
            self.assertEqual(app.links, [])

    def test_an_upstream_that_takes_no_more_of_a_body_is_a_504(self):
        gate = Gate()
        with Upstream(greet=gate) as app, Proxy(site(app.port, basic={
                "body_timeout": "300ms"})) as proxy, proxy.connect() as client:
            client.send(post(b"Content-Length: %d" % LARGE))
            client.sock.settimeout(0.05)
            deadline = time.monotonic() + PATIENCE
            while not client.kept:
                self.assertLess(time.monotonic(), deadline)
                try:
                    client.sock.send(PIECE)
                except (TimeoutError, ConnectionError):
                    pass
                try:
                    client.more()
                except TimeoutError:
                    pass
            self.assertEqual(client.answer().status, 504)
            gate.opened.set()

    def test_an_upstream_that_does_not_take_the_connection_is_a_504(self):
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            waiting = []
            for _ in range(4):  # the queue, until it is full
                sock = socket.socket()
                sock.setblocking(False)
                sock.connect_ex(full.getsockname())
                waiting.append(sock)
            with Proxy(site(full.getsockname()[1], up={"connect_timeout": "300ms"})) as proxy:
                self.assertEqual(proxy.ask().status, 504)
            for sock in waiting:
                sock.close()

    def test_CONNECT_and_paths_of_no_location_are_not_passed_on(self):
        with Upstream() as app, Proxy(site(app.port, locations={"api": {"path": "/api"}})) as proxy:
            self.assertEqual(proxy.ask("/api/x").status, 200)
            self.assertEqual(proxy.ask("/other").status, 404)
            with proxy.connect() as client:
                client.send(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")
                self.assertIn(client.answer().status, (400, 405))
            self.assertEqual(app.targets(), ["/api/x"])


class Cache(unittest.TestCase):
    def asked(self, *answers, targets=("/", "/"), fields=(), **how):
        """How many requests got to the upstream, and what the client was told."""
        with Upstream({"/": lambda *_: answers[min(len(app.seen), len(answers)) - 1]}) as app, \
                Proxy(site(app.port, cache=True)) as proxy:
            got = [proxy.ask(target, fields=fields, **how) for target in targets]
            return len(app.seen), got

    def test_what_may_be_kept_is_kept_and_has_an_age(self):
        fresh = reply(fields=[("Cache-Control", "max-age=60"), ("X-A", "1")])
        chunked = (b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
                   b"Transfer-Encoding: chunked\r\n\r\n3\r\nok\n\r\n0\r\n\r\n")
        for answer in (fresh, chunked):
            count, (first, second) = self.asked(answer)
            self.assertEqual((count, first.body, second.body), (1, b"ok\n", b"ok\n"))
            self.assertEqual((first.fields.one("Age"), second.fields.one("Content-Length")),
                             (None, "3"))
            self.assertLessEqual(int(second.fields.one("Age")), 20)

    def test_what_may_not_be_kept_is_asked_for_again(self):
        rows = [
            ("nothing said", [], 200),
            ("no-store", [("Cache-Control", "no-store, max-age=60")], 200),
            ("private", [("Cache-Control", "private, max-age=60")], 200),
            ("no-cache", [("Cache-Control", "no-cache, max-age=60")], 200),
            ("max-age=0", [("Cache-Control", "max-age=0")], 200),
            ("s-maxage=0", [("Cache-Control", "max-age=60, s-maxage=0")], 200),
            ("max-age=soon", [("Cache-Control", "max-age=soon")], 200),
            ("it is old already", [("Cache-Control", "max-age=60"), ("Age", "60")], 200),
            ("Vary", [("Cache-Control", "max-age=60"), ("Vary", "Accept")], 200),
            ("a cookie", [("Cache-Control", "max-age=60"), ("Set-Cookie", "a=b")], 200),
            ("an error", [("Cache-Control", "max-age=60")], 404),
        ]
        for name, fields, status in rows:
            self.assertEqual(self.asked(reply(status, fields))[0], 2, name)

    def test_who_asks_may_not_want_it(self):
        fresh = reply(fields=[("Cache-Control", "max-age=60")])
        for fields in ([("Authorization", "Basic eDp5")], [("Cache-Control", "no-cache")],
                       [("Cache-Control", "no-store")], [("Range", "bytes=0-1")]):
            self.assertEqual(self.asked(fresh, fields=fields)[0], 2, fields)
        self.assertEqual(self.asked(fresh, method="POST")[0], 2)
        self.assertEqual(self.asked(fresh, targets=("/?a", "/?b"))[0], 2)

    def test_a_HEAD_is_answered_by_what_a_GET_left_and_leaves_nothing(self):
        fresh = reply(fields=[("Cache-Control", "max-age=60")])
        with Upstream({"/": lambda request, _: fresh if request.method == "GET" else
                       fresh.partition(END)[0] + END}) as app, \
                Proxy(site(app.port, cache=True)) as proxy, proxy.connect() as client:
            client.ask(method="HEAD")
            client.ask()
            head = client.ask(method="HEAD")
            self.assertEqual((head.status, head.fields.one("Content-Length")), (200, "3"))
            self.assertEqual([request.method for request in app.seen], ["HEAD", "GET"])

    def test_what_broke_off_is_not_kept(self):
        def broken(_, link):
            link.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
                      b"Content-Length: 10\r\n\r\n123")
        with Upstream({"/": broken}) as app, Proxy(site(app.port, cache=True)) as proxy:
            for count in (1, 2, 3):
                with proxy.connect() as client:
                    client.request("/")
                    client.rest()
                self.assertEqual(len(app.seen), count)
            self.assertEqual(proxy.status()["cache"]["bytes"], 0)

    def test_hosts_and_locations_do_not_share_what_is_kept(self):
        fresh = reply(fields=[("Cache-Control", "max-age=60")])
        with Upstream({"/": lambda *_: fresh}) as app, Proxy(site(app.port, cache=True)) as proxy, \
                proxy.connect() as client:
            for host in (b"a", b"b", b"a", b"b"):
                client.send(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
                self.assertEqual(client.answer().body, b"ok\n")
            self.assertEqual(len(app.seen), 2)

    def test_its_size_is_bounded(self):
        body = b"x" * 10_000
        with Upstream() as app, Proxy(site(app.port, cache=True, basic={
                "cache_bytes": 400_000})) as proxy, proxy.connect() as client:
            app.on.update({f"/{n}": lambda *_: reply(fields=[("Cache-Control", "max-age=60")],
                                                     body=body) for n in range(100)})
            for n in range(100):
                client.ask(f"/{n}")
            self.assertLessEqual(proxy.status()["cache"]["bytes"], 400_000)
            self.assertGreater(proxy.status()["cache"]["bytes"], 300_000)
            client.ask("/99")
            client.ask("/0")
            self.assertEqual(len(app.seen), 101)  # the latest was there, the first was not


if __name__ == "__main__":
    proxied.PROGRAM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

# SPDX-License-Identifier: BSL-1.0
"""proxy_ja4.test.py PROGRAM: limits and restrictions by TLS fingerprint, through the running proxy.

Clients are those of OpenSSL, curl, Python and Chromium. What their fingerprints should be is
calculated by hello.py from the bytes that they sent, and seen in the lines of a dry run.
"""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import hello
import proxied
from proxied import PATIENCE, Client, Proxy, Upstream, check, in_one_window, reply, site, until

HOUR = "1h"
ONE = {"max": 1, "interval": HOUR}
SEE_ALL = {"category": "ja4_restriction", "ja4_list": ["^nobody$"], "dry_run": True}
REQUEST = b"GET / HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n\r\n"
SOME_JA4 = "t13d1516h2_8daaf6152771_02713d6af862"
OTHER_JA4 = "t13d1715h2_5b57614c22b0_3d5424432f57"


class Relay:
    """Passes connections on to `at` and keeps what each client sent. Cuts the first message of each
    into records of `most` bytes."""

    def __init__(self, at, most=None):
        self.at, self.most, self.said = at, most, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.said.append(bytearray())
            threading.Thread(target=self.carry, args=(client, self.said[-1]), daemon=True).start()

    def carry(self, client, said):
        with client, socket.create_connection(self.at) as server:
            back = threading.Thread(target=self.pump, args=(server, client), daemon=True)
            back.start()
            if self.most:
                while not (first := hello.message_in(bytes(said))):
                    said += client.recv(65_536)
                server.sendall(hello.records(first, self.most))
            self.pump(client, server, said)
            back.join()

    @staticmethod
    def pump(source, sink, kept=None):
        try:
            while data := source.recv(65_536):
                if kept is not None:
                    kept += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of both went

    def fingerprint(self, index):
        return hello.fingerprints(hello.message_in(bytes(self.said[index])))["ja4"]


def tls_client(change=lambda context: None):
    """A Python client whose context was changed; a wrap for proxied.Client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    change(context)
    return context.wrap_socket


def old(context):
    context.maximum_version = ssl.TLSVersion.TLSv1_2


def two_protocols(context):
    context.set_alpn_protocols(["http/1.1", "x"])


def names_of(count):
    """ALPN names of 250 bytes each, to make a hello long."""
    return lambda context: context.set_alpn_protocols([f"{n:0250}" for n in range(count)])


STACKS = {"plain": tls_client(), "old": tls_client(old), "two": tls_client(two_protocols)}


def status(proxy, stack="plain", source="127.0.0.1", fields=(), server="web"):
    wrap = STACKS[stack] if isinstance(stack, str) else stack
    with Client(proxy.at[server], source, wrap) as client:
        return client.ask(fields=fields).status


def warnings(proxy):
    return [line for line in proxy.lines("WARN") if "dry run" not in line]


def matched(proxy, count):
    """What the first `count` lines of a dry run went by."""
    lines = until(lambda: (found := proxy.lines("dry run")) and len(found) >= count and found,
                  what="the lines of the dry run")
    return [re.search(r' matched="([^"]*)"', line)[1] for line in lines[:count]]


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory(prefix="weir-proxy-")
        cls.addClassCleanup(made.cleanup)
        cls.folder = made.name
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", cls.folder + "/key.pem", "-out", cls.folder + "/cert.pem"],
                       check=True, capture_output=True, timeout=PATIENCE)

    def secure(self, **more):
        return {"tls_cert": self.folder + "/cert.pem", "tls_key": self.folder + "/key.pem",
                "ja4": True, **more}

    def proxy(self, app, plugins, basic=None, servers=None, **more):
        return Proxy(site(app.port, plugins, servers=servers or {"web": self.secure(**more)},
                          basic={"threads": 1, **(basic or {})}))


class Limits(Tls):
    def test_P37_ja4_is_one_budget_for_each_stack_from_any_address(self):
        def deed():
            with Upstream() as app, self.proxy(app, {
                    "stack": {"tag": "ja4", "max": 2, "interval": HOUR}}) as proxy:
                self.assertEqual([status(proxy, "plain", f"127.0.0.{n}") for n in (1, 2, 3, 1)],
                                 [200, 200, 429, 429])
                self.assertEqual([status(proxy, "old") for _ in range(3)], [200, 200, 429])
                self.assertEqual(status(proxy, "two"), 200)
                self.assertEqual(len(app.seen), 5)
        in_one_window(3600, deed)

    def test_P37_ip_ja4_is_a_budget_for_each_address_and_stack(self):
        def deed():
            with Upstream() as app, self.proxy(app, {"both": {"tag": "ip_ja4", **ONE}}) as proxy:
                asked = [("plain", 1), ("plain", 2), ("old", 1), ("old", 2)]
                got = [status(proxy, stack, f"127.0.0.{n}") for stack, n in asked * 2]
                self.assertEqual(got, [200] * 4 + [429] * 4)
        in_one_window(3600, deed)

    def test_all_requests_of_a_connection_have_its_fingerprint(self):
        def deed():
            with Upstream() as app, self.proxy(app, {"stack": {
                    "tag": "ja4", "max": 3, "interval": HOUR}}) as proxy, \
                    Client(proxy.at["web"], wrap=STACKS["plain"]) as client:
                self.assertEqual([client.ask().status for _ in range(5)],
                                 [200] * 3 + [429] * 2)
        in_one_window(3600, deed)

    def test_P36_P37_without_a_fingerprint_missing_key_decides_and_ip_ja4_counts_the_address(self):
        cases = [("ja4", "pass", [200] * 3), ("ja4", "reject", [400] * 3),
                 ("ja4", "shared_bucket", [200, 429, 429]), ("ip_ja4", "reject", [200, 429, 200])]
        servers = {"web": self.secure(ja4=False), "bare": {"addr": "127.0.0.4:0"}}
        for tag, missing, expected in cases:
            def deed():
                with Upstream() as app, self.proxy(app, {"stack": {
                        "tag": tag, **ONE, "missing_key": missing}}, servers=servers) as proxy:
                    got = [status(proxy, stack, source) for stack, source in (
                        ("plain", "127.0.0.1"), ("old", "127.0.0.1"), ("old", "127.0.0.2"))]
                    self.assertEqual(got, expected)
                    answer = proxy.ask(server="bare", source="127.0.0.1")
                    if missing == "reject" and tag == "ja4":
                        self.assertEqual(answer.body, b"Plugin limit, a TLS connection with a JA4 "
                                                      b"fingerprint is required")
                    else:
                        self.assertEqual(answer.status, 200 if missing == "pass" else 429)
            with self.subTest((tag, missing)):
                in_one_window(3600, deed)

    def test_P38_a_hello_of_more_than_16384_bytes_has_no_fingerprint_and_is_served(self):
        limit = {"stack": {"tag": "ja4", **ONE, "missing_key": "reject"}}
        with Upstream() as app, self.proxy(app, limit) as proxy, Relay(proxy.at["web"]) as relay:
            def ask(wrap):
                with Client(("127.0.0.1", relay.port), wrap=wrap) as client:
                    got = client.ask().status
                return got, len(hello.message_in(bytes(relay.said[-1])))
            got, length = ask(tls_client(names_of(63)))
            self.assertEqual(got, 200)
            self.assertTrue(16_000 < length <= 16_384, length)
            got, length = ask(tls_client(names_of(65)))
            self.assertEqual(got, 400)
            self.assertTrue(16_384 < length < 17_000, length)

    def test_P38_records_may_be_as_many_as_they_like(self):
        with Upstream() as app, self.proxy(app, {"see": SEE_ALL}) as proxy, \
                Relay(proxy.at["web"], 3) as small, Relay(proxy.at["web"], 1) as smallest:
            for relay, change in ((small, names_of(60)), (smallest, old)):
                with Client(("127.0.0.1", relay.port), wrap=tls_client(change)) as client:
                    self.assertEqual(client.ask().status, 200)
            message = hello.message_in(bytes(small.said[0]))
            self.assertGreater(len(hello.records(message, 3)), 18_432)
            self.assertEqual(matched(proxy, 2), [small.fingerprint(0), smallest.fingerprint(0)])

    def test_P38_a_handshake_has_its_own_deadline(self):
        with Upstream() as app, self.proxy(app, {}, {"handshake_timeout": "300ms"}) as proxy, \
                proxy.connect() as silent, proxy.connect() as half:
            half.send(b"\x16\x03\x01\x02\x00\x01\x00")
            start = time.monotonic()
            self.assertTrue(silent.closed())
            self.assertTrue(half.closed())
            self.assertLess(time.monotonic() - start, 5)
            with Client(proxy.at["web"], wrap=STACKS["plain"]) as client:
                time.sleep(0.6)  # it is over, so the deadline is that of a request
                self.assertEqual(client.ask().status, 200)

    def test_P40_another_cipher_list_is_another_budget(self):
        def ciphers(which):
            def change(context):
                old(context)
                context.set_ciphers(which)
            return tls_client(change)

        def deed():
            with Upstream() as app, self.proxy(app, {"stack": {"tag": "ja4", **ONE}}) as proxy:
                several = [ciphers(":".join(["ECDHE-ECDSA-AES128-GCM-SHA256",
                                             "ECDHE-ECDSA-AES256-GCM-SHA384",
                                             "ECDHE-ECDSA-CHACHA20-POLY1305"][:n]))
                           for n in (1, 2, 3)]
                self.assertEqual([status(proxy, one) for one in several], [200] * 3)
                turned = ciphers("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256")
                self.assertEqual(status(proxy, turned), 429)  # their order makes no new one
        in_one_window(3600, deed)


class Proxies(Tls):
    def test_P39_behind_a_proxy_that_ends_TLS_ja4_is_that_proxys(self):
        limits = [("ja4", [200, 429, 429]), ("ip_ja4", [200, 200, 429])]
        for tag, expected in limits:
            def deed():
                with Upstream() as app, self.proxy(app, {"stack": {"tag": tag, **ONE}}, {
                        "trusted_proxies": ["127.0.0.2"]}) as proxy:
                    got = [status(proxy, "plain", "127.0.0.2", [("X-Forwarded-For", who)])
                           for who in ("203.0.113.1", "203.0.113.2", "203.0.113.2")]
                    self.assertEqual(got, expected)
            with self.subTest(tag):
                in_one_window(3600, deed)

    def test_a_header_is_believed_from_a_trusted_peer_alone(self):
        def deed():
            with Upstream() as app, self.proxy(app, {"stack": {
                    "tag": "ja4", **ONE, "missing_key": "reject"}}, {
                    "trusted_proxies": ["127.0.0.2"]}, ja4_header="X-JA4") as proxy:
                def ask(source, *values):
                    return status(proxy, "plain", source, [("x-ja4", value) for value in values])
                self.assertEqual([ask("127.0.0.2", SOME_JA4), ask("127.0.0.2", SOME_JA4),
                                  ask("127.0.0.2", OTHER_JA4)], [200, 429, 200])
                # A stranger has that of its connection, whatever it says.
                self.assertEqual([ask("127.0.0.1", f"t13d15{n:02}h2_8daaf6152771_02713d6af862")
                                  for n in range(3)], [200, 429, 429])
                # What a proxy does not tell for certain is none, not the proxy's own.
                for values in ([], ["x"], [SOME_JA4 + "0"], [SOME_JA4, OTHER_JA4], [""]):
                    self.assertEqual(ask("127.0.0.2", *values), 400, values)
        in_one_window(3600, deed)

    def test_a_header_is_read_over_plain_HTTP_too_and_forged_ones_go_no_further(self):
        def deed():
            with Upstream() as app, self.proxy(
                    app, {"stack": {"tag": "ja4", **ONE}}, {"trusted_proxies": ["127.0.0.2"]},
                    servers={"web": {"ja4_header": "X-JA4"}}) as proxy:
                told = [("X-JA4", SOME_JA4)]
                self.assertEqual([proxy.ask(fields=told, source=source).status for source in (
                    "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3")], [200, 429, 200, 200])
                self.assertEqual([request.fields.all("X-JA4") for request in app.seen],
                                 [[SOME_JA4], [], []])
                self.assertEqual(warnings(proxy), [])
        in_one_window(3600, deed)

    def test_the_PROXY_protocol_tells_whose_header_it_is(self):
        def deed():
            with Upstream() as app, self.proxy(
                    app, {"stack": {"tag": "ja4", **ONE}},
                    {"trusted_proxies": ["127.0.0.2", "192.0.2.1"]},
                    ja4_header="X-JA4", proxy_protocol=True) as proxy:
                def ask(peer, value):
                    def wrap(sock):
                        sock.sendall(b"PROXY TCP4 %s 192.0.2.9 123 5678\r\n" % peer)
                        return STACKS["plain"](sock)
                    return status(proxy, wrap, "127.0.0.2", [("X-JA4", value)])
                got = [ask(*one) for one in ((b"192.0.2.1", SOME_JA4), (b"192.0.2.1", SOME_JA4),
                                             (b"192.0.2.5", SOME_JA4), (b"192.0.2.5", OTHER_JA4))]
                self.assertEqual(got, [200, 429, 200, 429])
        in_one_window(3600, deed)

    def test_a_header_that_nobody_may_send_is_a_warning_and_a_name_that_is_none_an_error(self):
        secure = self.secure
        code, told, _ = check(site(5000, servers={"web": secure(ja4_header="X-JA4")}))
        self.assertEqual(code, 0)
        self.assertIn("ja4_header has no effect without basic.trusted_proxies", told)
        code, told, _ = check(site(5000, servers={"web": secure(ja4_header="X JA4")},
                                   basic={"trusted_proxies": ["127.0.0.1"]}))
        self.assertEqual(code, 2)
        self.assertRegex(told, r"ERROR .*servers\.web: ja4_header has \"X JA4\"")


class Restrictions(Tls):
    def fingerprint(self, stack):
        with Upstream() as app, self.proxy(app, {"see": SEE_ALL}) as proxy:
            self.assertEqual(status(proxy, stack), 200)
            return matched(proxy, 1)[0]

    def test_P67_allow_and_deny_go_by_the_full_fingerprint(self):
        plain, old_one = (self.fingerprint(stack) for stack in ("plain", "old"))
        self.assertRegex(plain, r"^t13i\d{4}00_[0-9a-f]{12}_[0-9a-f]{12}$")
        self.assertNotEqual(plain, old_one)
        for entry in (f"^{plain}$", plain[4:], "^t13"):
            for kind, expected in (("allow", [200, 403]), ("DENY", [403, 200])):
                rule = {"category": "ja4_restriction", "type": kind, "ja4_list": [entry],
                        "message": "not here"}
                with self.subTest(entry, kind=kind), Upstream() as app, \
                        self.proxy(app, {"rule": rule}) as proxy:
                    self.assertEqual([status(proxy, stack) for stack in ("plain", "old")],
                                     expected)
                    with Client(proxy.at["web"], wrap=STACKS[
                            "old" if kind == "allow" else "plain"]) as client:
                        answer = client.ask()
                    self.assertEqual((answer.status, answer.body), (403, b"not here"))
                    self.assertEqual(len(app.seen), 1)

    def test_P67_without_a_fingerprint_allow_refuses_and_deny_does_not(self):
        for kind, expected in (("allow", 403), ("deny", 200)):
            rule = {"category": "ja4_restriction", "type": kind, "ja4_list": [".*"]}
            with self.subTest(kind), Upstream() as app, self.proxy(
                    app, {"rule": rule}, servers={"web": {}}) as proxy:
                self.assertEqual(proxy.ask().status, expected)
                [warning] = warnings(proxy)
                self.assertIn(f'server "web" has no fingerprints, so '
                              f'{"everybody" if kind == "allow" else "nobody"} is refused', warning)

    def test_P61_a_dry_run_logs_the_fingerprint_calculated_from_the_bytes_that_were_sent(self):
        with Upstream() as app, self.proxy(app, {"see": SEE_ALL}) as proxy, \
                Relay(proxy.at["web"]) as relay:
            at = f"127.0.0.1:{relay.port}"
            s_client = ["openssl", "s_client", "-ign_eof", "-connect", at]
            curl = ["curl", "--silent", "--show-error", "--insecure", f"https://{at}/"]
            commands = [s_client, [*s_client, "-servername", "a.test", "-alpn", "h2,http/1.1"],
                        [*s_client, "-tls1_2"], curl]
            for command in commands * 2:
                done = subprocess.run(command, input=REQUEST, capture_output=True, check=False,
                                      timeout=PATIENCE)
                self.assertIn(b"ok\n", done.stdout, command)
            seen = matched(proxy, 8)
            self.assertEqual(seen, [relay.fingerprint(n) for n in range(8)])
            self.assertEqual(seen[:4], seen[4:])  # the same over repeats
            self.assertEqual(len(set(seen)), 4)
            self.assertEqual(len(app.seen), 8)
            line = proxy.lines("dry run")[0]
            for word in ('category="ja4_restriction"', "status=403",
                         "reason=Request is forbidden", f'matched="{seen[0]}"'):
                self.assertIn(word, line)
            self.assertEqual(proxy.dry_run("see")["seen"], 8)

    def test_a_list_is_required(self):
        for rule, words in (({}, "ja4_list is required"), ({"ja4_list": []}, "ja4_list is empty"),
                            ({"ja4_list": ["("]}, "which is no pattern")):
            code, told, _ = check(site(5000, {"rule": {"category": "ja4_restriction", **rule}}))
            self.assertEqual(code, 2)
            self.assertIn(words, told)


class Warnings(Tls):
    def test_P14_a_limit_by_fingerprint_on_a_server_without_them_is_told_once(self):
        limits = {"stack": {"tag": "ja4", **ONE, "missing_key": "reject"},
                  "both": {"tag": "ip_ja4", "max": 100}}
        with Upstream() as app:
            without = site(app.port, limits, servers={"web": self.secure(ja4=False)})
            code, told, _ = check(without)
            self.assertEqual((code, told.count("WARN")), (0, 2))
            with Proxy(without) as proxy:
                said = warnings(proxy)
                for line, tag in zip(said, ("ja4", "ip_ja4"), strict=True):
                    self.assertIn(f'tag = "{tag}", but server "web" has no fingerprints: set '
                                  "ja4 = true there", line)
                proxy.reload()
                self.assertEqual(warnings(proxy), said)
                self.assertEqual(status(proxy), 400)
                # With ja4 = true connections that come after the reload have one, as told.
                with Client(proxy.at["web"], wrap=STACKS["plain"]) as before:
                    self.assertEqual(before.ask().status, 400)
                    proxy.reload(site(app.port, limits, servers={"web": self.secure()},
                                      basic={"status": "127.0.0.3:0"}))
                    self.assertEqual(before.ask().status, 400)
                self.assertEqual(warnings(proxy), said)
                self.assertEqual(status(proxy), 200)

    def test_P14_the_reload_that_brings_such_a_limit_in_warns(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            self.assertEqual(warnings(proxy), [])
            proxy.reload(site(app.port, {"stack": {"tag": "ja4", **ONE}}))
            self.assertEqual(len(warnings(proxy)), 1)
            self.assertEqual(proxy.ask().status, 200)

    def test_ja4_without_TLS_is_a_warning(self):
        code, told, _ = check(site(5000, servers={"web": {"ja4": True}}))
        self.assertEqual(code, 0)
        self.assertIn("ja4 has no effect without tls_cert and tls_key", told)


class Browser(Tls):
    PAGE = (b'<!doctype html><link rel="stylesheet" href="/style.css"><script src="/script.js">'
            b'</script><img id="picture" src="/picture.svg" onload="document.title=\'seen\'">'
            b'<p id="said">nothing</p><script>write()</script>')

    def dump(self, chromium, url):
        with tempfile.TemporaryDirectory(prefix="weir-chromium-") as profile:
            return subprocess.run(
                [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                 "--no-first-run", "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", "--ignore-certificate-errors", f"--user-data-dir={profile}",
                 "--dump-dom", url], capture_output=True, check=True, timeout=120).stdout

    def test_chromium_loads_a_page_and_then_shows_the_page_of_a_limit(self):
        chromium = shutil.which("chromium")
        if not chromium:
            self.skipTest("chromium is not installed")
        script = b"function write() { document.getElementById('said').textContent ="\
                 b" getComputedStyle(document.body).marginTop; }"
        picture = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
        kinds = {"/": ("text/html", self.PAGE), "/script.js": ("text/javascript", script),
                 "/style.css": ("text/css", b"body { margin-top: 37px }"),
                 "/picture.svg": ("image/svg+xml", picture)}
        on = {path: lambda *_, kind=kind, body=body: reply(fields=[("Content-Type", kind)],
                                                           body=body)
              for path, (kind, body) in kinds.items()}
        locations = {"site": {"plugins": ["see"]},
                     "narrow": {"path": "/narrow", "plugins": ["see", "stack"]}}

        def deed():
            with Upstream(on) as app, Proxy(site(app.port, {
                    "see": SEE_ALL, "stack": {"tag": "ja4", **ONE, "missing_key": "reject"}},
                    locations=locations, servers={"web": self.secure()})) as proxy:
                url = f"https://localhost:{proxy.port}"
                page = self.dump(chromium, url + "/")
                self.assertIn(b'<p id="said">37px</p>', page)
                self.assertIn(b"<title>seen</title>", page)
                self.assertLessEqual(set(kinds), set(app.targets()))
                self.assertIn(b"ok", self.dump(chromium, url + "/narrow"))
                limited = self.dump(chromium, url + "/narrow")
                self.assertIn(b"Plugin limit, exceed limit 2/1", limited)
                seen = matched(proxy, len(kinds) + 2)
                self.assertRegex(seen[0], r"^t13d\d{4}h2_[0-9a-f]{12}_[0-9a-f]{12}$")
        in_one_window(3600, deed)


if __name__ == "__main__":
    proxied.PROGRAM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

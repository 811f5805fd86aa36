# SPDX-License-Identifier: BSL-1.0
"""limit_by_ip.test.py PROGRAM: the example as a process, alone and behind a real nginx.

The window is an hour, so that no run meets its end by accident and a full limiter stays full.
"""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from nginx import Nginx

PROGRAM = ""
REFUSED = re.compile(rb"Too many requests\. Try again in (\d+) seconds\.\n")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20)


def curl(url, *options):
    """Status, header lines by lower-case name, body: as curl saw them."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--include", "--max-time", "20", *options, url],
        capture_output=True, timeout=30)
    if done.returncode != 0:
        raise AssertionError(f"curl: {done.returncode} {done.stderr.decode()}")
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, body = body.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(": ")
        headers.setdefault(name.lower(), []).append(value)
    return int(lines[0].split()[1]), headers, body


class Server:
    """The program on a port of its own, until the with block ends."""

    def __init__(self, *flags):
        self.flags = flags

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([PROGRAM, "--listen", "127.0.0.1:0", *self.flags],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        said = re.fullmatch(r"listening on (http://127\.0\.0\.1:(\d+))\n",
                            self.process.stdout.readline())
        assert said, "the first line is not the address"
        self.hint = self.process.stdout.readline()
        self.url, self.port = said[1], int(said[2])
        return self

    def stop(self, signal_number):
        self.process.send_signal(signal_number)
        return self.process.wait(timeout=20)

    def warned(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class Flags(unittest.TestCase):
    def test_a_wrong_value_is_told_in_one_line_and_ends_with_2(self):
        cases = [
            (["--window", "1h30"], "--window", "1h30"),
            (["--window", "10mb"], "--window", "10mb"),
            (["--window", "1 month"], "--window", "1 month"),
            (["--window", "30x"], "--window", "30x"),
            (["--window", "10"], "--window", "10"),
            (["--window", ""], "--window", '""'),
            (["--window", "-1s"], "--window", "-1s"),
            (["--window", "1.5h"], "--window", "1.5h"),
            (["--window", "1e9s"], "--window", "1e9s"),
            (["--window", " 5s"], "--window", " 5s"),
            (["--window", "5S"], "--window", "5S"),
            (["--window", "0s"], "--window", "0s"),
            (["--window", "30s1m"], "--window", "30s1m"),
            (["--window", "9999999999999999999s"], "--window", "9999999999999999999s"),
            (["--limit", "-1"], "--limit", "-1"),
            (["--limit", "60/min"], "--limit", "60/min"),
            (["--listen", "8080"], "--listen", "8080"),
            (["--listen", "127.0.0.1:65536"], "--listen", "65536"),
            (["--listen", "::1:80"], "--listen", "::1:80"),
            (["--trusted-hops", "-1"], "--trusted-hops", "-1"),
            (["--trusted-hops", "100000"], "--trusted-hops", "100000"),
            (["--hops", "1"], "--hops", "--trusted-hops"),
            (["--limit"], "--limit", "a value"),
        ]
        for arguments, where, what in cases:
            with self.subTest(arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertIn(where, done.stderr)
                self.assertIn(what, done.stderr)
                self.assertIn("allowed is", done.stderr)

    def test_a_window_means_what_it_says(self):
        cases = [("60s", 60), ("1m", 60), ("1h30m", 5400), ("1h", 3600), ("90s", 90)]
        for window, seconds in cases:
            with self.subTest(window), Server("--limit", "1", "--window", window) as server:
                self.assertEqual(curl(server.url)[0], 200)
                wait = int(curl(server.url)[1]["retry-after"][0])
                # One unit of a sliding window comes back within the two windows that it lies in.
                self.assertGreater(wait, 0)
                self.assertLessEqual(wait, 2 * seconds)
                self.assertGreater(wait, seconds - 30)

    def test_a_port_in_use_is_told_and_ends_with_1(self):
        with Server() as server:
            done = run("--listen", f"127.0.0.1:{server.port}")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"port {server.port}", done.stderr)

    def test_both_signals_end_it_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), Server() as server:
                self.assertEqual(curl(server.url)[0], 200)
                self.assertEqual(server.stop(number), 0)

    def test_a_signal_right_after_the_first_line_ends_it_too(self):
        for _ in range(20):
            with Server() as server:
                self.assertEqual(server.stop(signal.SIGTERM), 0)

    def test_the_hint_is_a_command_that_works(self):
        with Server() as server:
            self.assertRegex(server.hint, r"^try: curl -i http://")
            self.assertEqual(curl(server.hint.split()[-1])[2], b"hello\n")


class Alone(unittest.TestCase):
    def assert_refused(self, answer, most):
        status, headers, body = answer
        self.assertEqual(status, 429)
        self.assertEqual(headers["cache-control"], ["no-store"])
        self.assertEqual(headers["content-type"], ["text/plain; charset=utf-8"])
        [seconds] = headers["retry-after"]
        self.assertRegex(seconds, r"^[1-9][0-9]*$")
        self.assertLessEqual(int(seconds), most)
        said = REFUSED.fullmatch(body)
        self.assertTrue(said, body)
        self.assertEqual(said[1].decode(), seconds)

    def test_the_limit_passes_and_the_next_is_refused(self):
        with Server("--limit", "5", "--window", "1h") as server:
            for _ in range(5):
                status, _, body = curl(server.url)
                self.assertEqual((status, body), (200, b"hello\n"))
            for _ in range(3):
                self.assert_refused(curl(server.url), 2 * 3600)

    def test_a_limit_of_0_refuses_everything_and_promises_nothing(self):
        with Server("--limit", "0", "--window", "1h") as server:
            status, headers, body = curl(server.url)
            self.assertEqual((status, body), (429, b"Too many requests.\n"))
            self.assertNotIn("retry-after", headers)

    def test_a_refused_HEAD_has_the_headers_of_the_GET_and_no_body(self):
        with Server("--limit", "0", "--window", "1h") as server:
            get, head = curl(server.url), curl(server.url, "--head")
            self.assertEqual(head[0], 429)
            self.assertEqual(head[2], b"")
            for name in ("content-type", "content-length", "cache-control"):
                self.assertEqual(head[1][name], get[1][name])

    def test_a_refused_POST_gets_the_whole_refusal(self):
        with Server("--limit", "1", "--window", "1h") as server:
            self.assertEqual(curl(server.url, "--data", "a=b")[0], 200)
            self.assert_refused(curl(server.url, "--data", "a=b"), 2 * 3600)
            self.assert_refused(curl(server.url, "--data", "a=" + "b" * 2000), 2 * 3600)
            self.assert_refused(curl(server.url, "--data", "a=b",
                                     "--header", "Transfer-Encoding: chunked"), 2 * 3600)
            self.assert_refused(curl(server.url, "--data", "a=b",
                                     "--header", "Expect: 100-continue"), 2 * 3600)

    def test_a_refused_GET_keeps_its_connection(self):
        with Server("--limit", "0", "--window", "1h") as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.connect()
            socket_of_first = connection.sock
            for _ in range(3):
                connection.request("GET", "/")
                self.assertEqual(connection.getresponse().read(), b"Too many requests.\n")
                self.assertIs(connection.sock, socket_of_first)
            connection.close()

    def test_headers_give_no_new_bucket_to_a_client_without_proxies(self):
        with Server("--limit", "1", "--window", "1h") as server:
            self.assertEqual(curl(server.url)[0], 200)
            for number, name in enumerate(["X-Forwarded-For", "Forwarded", "X-Real-IP",
                                           "REMOTE_ADDR", "CF-Connecting-IP", "True-Client-IP"]):
                self.assertEqual(curl(server.url, "--header", f"{name}: 203.0.113.{number}")[0],
                                 429, name)

    def test_two_addresses_have_two_buckets(self):
        with Server("--limit", "1", "--window", "1h") as server:
            for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
                self.assertEqual(curl(server.url, "--interface", source)[0], 200)
                self.assertEqual(curl(server.url, "--interface", source)[0], 429)


class BehindNginx(unittest.TestCase):
    def setUp(self):
        self.binary = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not self.binary:
            self.skipTest("nginx is not installed")

    def test_two_clients_have_two_buckets(self):
        with Server("--limit", "2", "--window", "1h", "--trusted-hops", "1") as server, \
                Nginx(self.binary, server.port) as nginx:
            for source in ("127.0.0.1", "127.0.0.2"):
                answers = [curl(nginx.url(), "--interface", source)[0] for _ in range(4)]
                self.assertEqual(answers, [200, 200, 429, 429], source)

    def test_a_forged_header_gives_no_new_bucket(self):
        forgeries = ["203.0.113.7", "203.0.113.8, 10.0.0.1", "127.0.0.9", "not an address",
                     "::1", ", ,", "x" * 4000, "1.1.1.1," * 300]
        with Server("--limit", "2", "--window", "1h", "--trusted-hops", "1") as server, \
                Nginx(self.binary, server.port) as nginx:
            for _ in range(2):
                self.assertEqual(curl(nginx.url())[0], 200)
            for forged in forgeries:
                self.assertEqual(curl(nginx.url(), "--header", f"X-Forwarded-For: {forged}")[0],
                                 429, forged[:40])
            self.assertEqual(curl(nginx.url(), "--header", "X-Forwarded-For: 1.1.1.1",
                                  "--header", "X-Forwarded-For: 2.2.2.2",
                                  "--header", "Forwarded: for=3.3.3.3")[0], 429)
            # Nor does it spend the bucket of the address that it names.
            self.assertEqual(curl(nginx.url(), "--interface", "127.0.0.9")[0], 200)

    def test_without_hops_all_share_the_bucket_of_nginx_and_a_warning_says_so(self):
        with Server("--limit", "2", "--window", "1h") as server, \
                Nginx(self.binary, server.port) as nginx:
            answers = [curl(nginx.url(), "--interface", source)[0]
                       for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3")]
            self.assertEqual(answers, [200, 200, 429])
            self.assertIn("forwarded_header_ignored", server.warned())

    def test_a_refused_POST_reaches_the_client_as_429_and_not_as_502(self):
        with Server("--limit", "1", "--window", "1h", "--trusted-hops", "1") as server, \
                Nginx(self.binary, server.port) as nginx:
            self.assertEqual(curl(nginx.url(), "--data", "a=b")[0], 200)
            for body in ("a=b", "a=" + "b" * 2000):
                status, headers, said = curl(nginx.url(), "--data", body)
                self.assertEqual(status, 429, body[:10])
                self.assertTrue(REFUSED.fullmatch(said))
                self.assertEqual(headers["cache-control"], ["no-store"])

    def test_a_smuggled_request_is_not_answered(self):
        # nginx keeps its connections to the program, so what is left of one request would be in
        # the way of the next.
        smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
        with Server("--limit", "0", "--window", "1h", "--trusted-hops", "1") as server, \
                Nginx(self.binary, server.port) as nginx:
            connection = http.client.HTTPConnection("127.0.0.1", nginx.port, timeout=20)
            for _ in range(5):
                connection.request("POST", "/form", body=smuggled)
                answer = connection.getresponse()
                self.assertEqual((answer.status, answer.read()), (429, b"Too many requests.\n"))
            connection.close()


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

# SPDX-License-Identifier: BSL-1.0
"""forms.test.py PROGRAM: the forms service as a process, over real sockets, alone and behind nginx.

forms_postgres.test.py runs what concerns the database once more on a server.

Windows are a year long where time must not matter, so that no run meets an edge by accident. Where
it does matter they are seconds, and a test first waits for the start of one.
"""

import collections
import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from nginx import Nginx

PROGRAM = ""
TOKEN = "operator-token-0123456789"
YEAR = "31536000"
URLENCODED = "application/x-www-form-urlencoded"

Answer = collections.namedtuple("Answer", "status headers body")


class Files:
    """Each folder has a database of its own: here a file."""

    @staticmethod
    def of(folder):
        return folder + "/forms.db"

    @staticmethod
    def counters(folder):
        with sqlite3.connect(folder + "/forms.db") as database:
            return database.execute("SELECT count(*) FROM weir_counters").fetchone()[0]

    @staticmethod
    def dump(_):
        return b""  # the files of the folder are all there is

    @staticmethod
    def let_claims_lapse(_):
        """Of processes that were killed; the lock of a file goes with its process."""


DATABASES = Files()


def environment(folder, **settings):
    """A clean one: nothing of the caller's own FORMS_ variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FORMS_")}
    ours = {"FORMS_LISTEN": "127.0.0.1:0", "FORMS_ADMIN_TOKEN": TOKEN,
            "FORMS_DATABASE": DATABASES.of(folder), "FORMS_OUTBOX": folder + "/outbox",
            "FORMS_RATE_LIMIT_IP_WINDOW_SECONDS": YEAR,
            "FORMS_RATE_LIMIT_ENDPOINT_WINDOW_SECONDS": YEAR, "FORMS_THREADS": "2"}
    given = {"FORMS_" + name: str(value) for name, value in settings.items()}
    return {**kept, **ours, **given}


def try_to_start(**settings):
    """Settings with which it should not start."""
    with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder:
        return subprocess.run([PROGRAM], env=environment(folder, **settings), capture_output=True,
                              text=True, timeout=20)


class Server:
    """The program in a folder and on a port of its own, until the with block ends."""

    def __init__(self, folder=None, **settings):
        self.made = None if folder else tempfile.TemporaryDirectory(prefix="weir-forms-")
        self.folder = folder or self.made.name
        self.settings = settings

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([PROGRAM], env=environment(self.folder, **self.settings),
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        said = re.fullmatch(r"listening on (?:http://(.+):(\d+)|unix:(.+))\n", line)
        assert said, f"the first line is {line!r}; {self.told()}"
        self.host, self.port, self.unix = said[1], int(said[2] or 0), said[3]
        return self

    def told(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        if self.made:
            self.made.cleanup()

    def ask(self, method, path, body=None, headers=None, source="127.0.0.1"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20,
                                                source_address=(source, 0))
        try:
            connection.request(method, path, body=body, headers=headers or {})
            got = connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        finally:
            connection.close()

    def post(self, endpoint="contact", body="name=Guest", headers=None, source="127.0.0.1",
             content_type=URLENCODED):
        sent = {"Content-Type": content_type, **(headers or {})}
        return self.ask("POST", "/f/" + endpoint, body, sent, source)

    def manage(self, method, path, value=None):
        body = None if value is None else json.dumps(value)
        got = self.ask(method, "/api" + path, body, {"Authorization": "Bearer " + TOKEN})
        return got.status, json.loads(got.body)

    def create(self, *names, active=True):
        for name in names:
            status, _ = self.manage("POST", "/endpoints", {"id": name, "active": active})
            assert status == 201, status

    def stored(self, endpoint="contact"):
        """All of them, page by page."""
        found, after = [], ""
        while after is not None:
            status, page = self.manage(
                "GET", f"/endpoints/{endpoint}/submissions?limit=1000&after={after}")
            assert status == 200, page
            found += page["submissions"]
            after = page["next"]
        return found

    def outbox(self, lines):
        """The deliveries, once there are so many."""
        path, deadline = self.folder + "/outbox", time.monotonic() + 10
        while True:
            with open(path, encoding="utf-8") as file:
                found = file.read().splitlines()
            if len(found) >= lines or time.monotonic() > deadline:
                return [json.loads(line) for line in found]
            time.sleep(0.02)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)


def raw_answer(raw):
    """All that comes until the server closes, and how long that took."""
    start, got = time.monotonic(), b""
    try:
        while chunk := raw.recv(65536):
            got += chunk
    except ConnectionResetError:
        got += b"<reset>"
    return got, time.monotonic() - start


def error(answer):
    return json.loads(answer.body)["error"]


def code(answer):
    return answer.status, error(answer)["code"]


def wait_for_window(seconds):
    """Sleeps until just after the start of a window."""
    time.sleep(seconds - time.time() % seconds + 0.02)


def form_data(*parts, boundary="xx-boundary"):
    body = "".join(f'--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n'
                   for head, value in parts) + f"--{boundary}--\r\n"
    return body, "multipart/form-data; boundary=" + boundary


class Settings(unittest.TestCase):
    def test_each_wrong_value_is_told_in_one_line_and_ends_with_2(self):
        cases = [
            ("RATE_LIMIT_IP_REQUESTS", "0"), ("RATE_LIMIT_IP_REQUESTS", "-1"),
            ("RATE_LIMIT_ENDPOINT_REQUESTS", "0"), ("RATE_LIMIT_IP_WINDOW_SECONDS", "0"),
            ("RATE_LIMIT_IP_WINDOW_SECONDS", "-60"), ("RATE_LIMIT_ENDPOINT_WINDOW_SECONDS", "1m"),
            ("RATE_LIMIT_ENABLED", "maybe"), ("TRUSTED_PROXY_HOPS", "-1"),
            ("TRUSTED_PROXY_HOPS", "1.5"), ("TRUSTED_PROXIES", "10.0.0.0/33"),
            ("IPV6_PREFIX", "129"), ("LISTEN", "localhost:80"), ("LISTEN", "127.0.0.1:65536"),
            ("COUNTERS", "redis"), ("MAX_BODY_BYTES", "0"), ("THREADS", "0"),
            ("HEADER_SECONDS", "0"),
        ]
        for name, value in cases:
            with self.subTest(name + "=" + value):
                done = try_to_start(**{name: value})
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(f'FORMS_{name} is "{value}", allowed is ', done.stderr)

    def test_a_URL_that_is_none_of_PostgreSQL_is_told_without_what_stands_in_it(self):
        for scheme, rest in (("mysql", "me:s3cret@host/forms"), ("file", "/forms.db"),
                             ("postgresql", "me:s3cret@[::1/forms"), ("postgres", "a?b=s3cret")):
            done = try_to_start(DATABASE=scheme + "://" + rest)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'FORMS_DATABASE is "{scheme}://', done.stderr)
            self.assertNotIn(rest[-6:], done.stderr)
            self.assertNotIn("s3cret", done.stderr)

    def test_all_problems_are_told_together(self):
        done = try_to_start(RATE_LIMIT_IP_REQUESTS="x", LISTEN="8080", TRUSTED_PROXY_HOPS="-1",
                            ADMIN_TOKEN="short")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        for name in ("RATE_LIMIT_IP_REQUESTS", "LISTEN", "TRUSTED_PROXY_HOPS", "ADMIN_TOKEN"):
            self.assertIn("FORMS_" + name, done.stderr)

    def test_F04_a_secret_of_15_characters_stops_the_start_and_is_not_told(self):
        for name in ("RATE_LIMIT_IP_SECRET", "ADMIN_TOKEN"):
            done = try_to_start(**{name: "tooshort0123456"})
            self.assertEqual(done.returncode, 2)
            self.assertIn("FORMS_" + name, done.stderr)
            self.assertNotIn("tooshort", done.stderr)

    def test_an_empty_value_counts_as_unset(self):
        with Server(RATE_LIMIT_IP_REQUESTS="", TRUSTED_PROXY_HOPS="", MAX_BODY_BYTES="",
                    TRUSTED_PROXIES="", RATE_LIMIT_IP_SECRET="", COUNTERS="") as server:
            self.assertEqual(server.ask("GET", "/health").status, 200)

    def test_a_token_that_nobody_set_is_made_and_told(self):
        with Server(ADMIN_TOKEN="") as server:
            said = re.fullmatch(r"admin token: ([0-9a-f]{32})\n", server.process.stdout.readline())
            got = server.ask("GET", "/api/endpoints",
                             headers={"Authorization": "Bearer " + said[1]})
            self.assertEqual(got.status, 200)

    def test_a_misspelled_setting_is_told(self):
        with Server(RATE_LIMT_IP_REQUESTS="5") as server:
            self.assertIn("FORMS_RATE_LIMT_IP_REQUESTS is no setting", server.told())

    def test_a_port_in_use_and_files_that_cannot_be_opened_end_with_1(self):
        with Server() as server:
            done = try_to_start(LISTEN=f"127.0.0.1:{server.port}")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("FORMS_LISTEN", done.stderr)
        for name in ("DATABASE", "OUTBOX"):
            done = try_to_start(**{name: "/nowhere/at/all"})
            self.assertEqual(done.returncode, 1)
            self.assertIn("/nowhere/at/all", done.stderr)


class Limits(unittest.TestCase):
    def assert_refused(self, answer, scope, limit, window):
        self.assertEqual(answer.status, 429)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        wait = answer.headers["Retry-After"]
        self.assertRegex(wait, r"^[1-9][0-9]*$")
        self.assertEqual(json.loads(answer.body), {"error": {
            "code": "rate_limit_exceeded",
            "message": f"Too many submission attempts. Try again in {wait} seconds.",
            "details": {"scope": scope, "limit": limit, "window_seconds": window,
                        "retry_after_seconds": int(wait)}}})

    def test_F01_without_limits_nothing_is_refused(self):
        with Server(RATE_LIMIT_ENABLED="false", RATE_LIMIT_IP_REQUESTS=1,
                    COUNTERS="database") as server:
            server.create("contact")
            self.assertEqual([server.post().status for _ in range(4)], [202] * 4)
            self.assertEqual(DATABASES.counters(server.folder), 0)

    def test_F02_F03_the_defaults_are_60_and_600(self):
        with Server(TRUSTED_PROXY_HOPS=1) as server:
            server.create("contact")
            forwarded = lambda n: {"X-Forwarded-For": f"203.0.{n // 250}.{n % 250}"}
            answers = [server.post(headers=forwarded(0)) for _ in range(61)]
            self.assertEqual([a.status for a in answers], [202] * 60 + [429])
            self.assert_refused(answers[60], "ip", 60, int(YEAR))
            # F09: 600 addresses, one attempt each; 60 are spent already.
            answers = [server.post(headers=forwarded(n)) for n in range(1, 542)]
            self.assertEqual([a.status for a in answers], [202] * 540 + [429])
            self.assert_refused(answers[540], "endpoint", 600, int(YEAR))

    def test_F07_F08_a_source_is_counted_over_all_endpoints(self):
        with Server(RATE_LIMIT_IP_REQUESTS=4) as server:
            server.create("one", "two")
            answers = [server.post(name) for name in ("one", "two") * 2 + ("one", "two")]
            self.assertEqual([a.status for a in answers], [202] * 4 + [429] * 2)
            for refused in answers[4:]:
                self.assert_refused(refused, "ip", 4, int(YEAR))
            self.assertEqual(server.post("one", source="127.0.0.2").status, 202)

    def test_F10_a_flooded_endpoint_leaves_the_other_usable(self):
        with Server(RATE_LIMIT_ENDPOINT_REQUESTS=2) as server:
            server.create("one", "two")
            self.assertEqual([server.post("one").status for _ in range(3)], [202, 202, 429])
            self.assertEqual(server.post("two", source="127.0.0.2").status, 202)

    def test_F11_F12_nothing_but_a_POST_to_a_form_spends_or_is_refused(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1) as server:
            server.create("contact")
            for _ in range(3):
                self.assertEqual(server.ask("GET", "/health").status, 200)
                self.assertEqual(server.ask("GET", "/f/contact").status, 200)
                self.assertEqual(server.ask("PUT", "/f/contact").status, 405)
            self.assertEqual(server.post().status, 202)
            self.assertEqual(server.post().status, 429)
            for _ in range(5):
                self.assertEqual(server.ask("GET", "/health").status, 200)
                self.assertEqual(server.manage("GET", "/endpoints")[0], 200)

    def test_F13_identical_submissions_are_all_taken(self):
        with Server() as server:
            server.create("contact")
            ids = {json.loads(server.post(body="a=spam").body)["submission_id"] for _ in range(9)}
            self.assertEqual(len(ids), 9)
            self.assertEqual(len(server.stored()), 9)

    def test_F14_to_F18_a_refusal_says_so_much_and_no_more(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1) as server:
            server.create("contact")
            accepted, refused = server.post(), server.post()
            self.assert_refused(refused, "ip", 1, int(YEAR))
            for word in (b"127.0.0.1", b"count", b"subject", b"window_start", b"column"):
                self.assertNotIn(word, refused.body)
            # F21
            for answer in (accepted, refused):
                self.assertFalse([n for n in answer.headers if n.lower().startswith("x-rate")])
            self.assertNotIn("Retry-After", accepted.headers)

    def test_F17_one_second_is_written_as_1_seconds(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1, RATE_LIMIT_IP_WINDOW_SECONDS=1) as server:
            server.create("contact")
            wait_for_window(1)
            server.post()
            refused = server.post()
            self.assert_refused(refused, "ip", 1, 1)
            self.assertIn(b"Try again in 1 seconds.", refused.body)

    def test_F19_F20_F24_F25_the_wait_is_to_the_end_of_the_window_that_refused(self):
        with Server(RATE_LIMIT_ENDPOINT_REQUESTS=1,
                    RATE_LIMIT_ENDPOINT_WINDOW_SECONDS=3) as server:
            server.create("contact")
            wait_for_window(3)
            self.assertEqual(server.post().status, 202)
            for pause in (0, 1.2, 0.9):
                time.sleep(pause)
                before = time.time()
                refused = server.post()
                after = time.time()
                self.assert_refused(refused, "endpoint", 1, 3)
                least, most = (math.ceil(3 - at % 3) for at in (after, before))
                self.assertIn(int(refused.headers["Retry-After"]), range(least, most + 1))
            time.sleep(3 - time.time() % 3 + 0.01)
            self.assertEqual(server.post().status, 202)

    def test_F26_the_boundary_is_soft(self):
        with Server(RATE_LIMIT_IP_REQUESTS=3, RATE_LIMIT_IP_WINDOW_SECONDS=2) as server:
            server.create("contact")
            wait_for_window(2)
            time.sleep(1.6)
            self.assertEqual([server.post().status for _ in range(3)], [202] * 3)
            wait_for_window(2)
            self.assertEqual([server.post().status for _ in range(4)], [202] * 3 + [429])

    def test_F28_F31_to_F35_every_attempt_costs_the_same_and_the_order_is_fixed(self):
        # Each is one attempt of a source that has two: one more passes, and then none.
        attempts = [
            ("F31", "No", "a=b", URLENCODED, 404, "invalid_endpoint_id"),
            ("F32", "unknown", "a=b", URLENCODED, 404, "endpoint_not_found"),
            ("F33", "disabled", "a=b", URLENCODED, 409, "endpoint_inactive"),
            ("F34", "contact", "a=b", "text/csv", 415, "unsupported_media_type"),
            ("F34", "contact", "--x", "multipart/form-data; boundary=y", 400, "malformed_body"),
            ("F34", "contact", "", URLENCODED, 422, "empty_submission"),
        ]
        with Server(RATE_LIMIT_IP_REQUESTS=2) as server:
            server.create("contact")
            server.create("disabled", active=False)
            for number, (row, endpoint, body, kind, status, word) in enumerate(attempts):
                source = f"127.0.1.{number + 1}"
                with self.subTest(row):
                    answer = server.post(endpoint, body, content_type=kind, source=source)
                    self.assertEqual(code(answer), (status, word))
                    self.assertNotIn("Retry-After", answer.headers)
                    self.assertEqual(server.post(source=source).status, 202)
                    self.assertEqual(server.post(source=source).status, 429)

    def test_F33_F34_what_is_refused_for_its_body_has_spent_the_endpoint_too(self):
        attempts = [("a=b", "text/csv", 415), ("", URLENCODED, 422),
                    ("--x", "multipart/form-data; boundary=y", 400)]
        with Server(RATE_LIMIT_ENDPOINT_REQUESTS=len(attempts)) as server:
            server.create("contact")
            server.create("disabled", active=False)
            for body, kind, status in attempts:
                self.assertEqual(server.post(body=body, content_type=kind).status, status)
            self.assertEqual(server.post().status, 429)
            answers = [server.post("disabled").status for _ in range(len(attempts) + 1)]
            self.assertEqual(answers, [409] * len(attempts) + [429])

    def test_F35_a_refusal_of_the_endpoint_has_spent_the_source(self):
        with Server(RATE_LIMIT_IP_REQUESTS=4, RATE_LIMIT_ENDPOINT_REQUESTS=1) as server:
            server.create("contact")
            answers = [server.post() for _ in range(5)]
            self.assertEqual([a.status for a in answers], [202, 429, 429, 429, 429])
            scopes = [error(a)["details"]["scope"] for a in answers[1:]]
            self.assertEqual(scopes, ["endpoint"] * 3 + ["ip"])

    def test_a_refusal_of_the_source_leaves_the_endpoint_alone(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1, RATE_LIMIT_ENDPOINT_REQUESTS=2) as server:
            server.create("contact")
            self.assertEqual([server.post().status for _ in range(6)], [202] + [429] * 5)
            self.assertEqual(server.post(source="127.0.0.2").status, 202)

    def test_unknown_ids_do_not_reach_the_disk(self):
        with Server(RATE_LIMIT_IP_REQUESTS=100000, COUNTERS="database") as server:
            for number in range(50):
                self.assertEqual(server.post(f"guess-{number}").status, 404)
            self.assertEqual(DATABASES.counters(server.folder), 1)  # the source

    def test_a_refused_connection_is_kept(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1) as server:
            server.create("contact")
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.connect()
            first = connection.sock
            for status in (202, 429, 429):
                connection.request("POST", "/f/contact", "a=b", {"Content-Type": URLENCODED})
                answer = connection.getresponse()
                answer.read()
                self.assertEqual(answer.status, status)
                self.assertIs(connection.sock, first)
            connection.close()


class SharedCounters(unittest.TestCase):
    def test_F65_two_processes_on_one_database_have_one_limit(self):
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder:
            settings = {"COUNTERS": "database", "RATE_LIMIT_IP_REQUESTS": 3,
                        "RATE_LIMIT_IP_SECRET": "0123456789abcdef"}
            with Server(folder, **settings) as one:
                one.create("contact")
                self.assertEqual([one.post().status for _ in range(3)], [202] * 3)
                with Server(folder, **settings) as other:
                    refused = other.post()
                    self.assertEqual(refused.status, 429)
                    self.assertEqual(error(refused)["details"]["scope"], "ip")
                    self.assertEqual(len(other.stored()), 3)
                    self.assertEqual(len(other.outbox(3)), 3)

    def test_an_endpoint_that_another_process_changes_is_seen_within_two_seconds(self):
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder:
            with Server(folder) as one, Server(folder) as other:
                one.create("contact")
                deadline = time.monotonic() + 5
                while other.post().status != 202 and time.monotonic() < deadline:
                    time.sleep(0.1)
                self.assertEqual(other.post().status, 202)

    def test_many_at_once_are_admitted_exactly_as_often_as_the_limit_says(self):
        settings = {"COUNTERS": "database", "RATE_LIMIT_IP_REQUESTS": 1000,
                    "RATE_LIMIT_ENDPOINT_REQUESTS": 25}
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder, \
                Server(folder, **settings) as one, Server(folder, **settings) as other:
            one.create("contact")
            time.sleep(1.5)
            statuses = []
            crew = [threading.Thread(target=lambda s=server: statuses.extend(
                s.post().status for _ in range(10))) for server in (one, other) * 3]
            for each in crew:
                each.start()
            for each in crew:
                each.join()
            self.assertEqual(collections.Counter(statuses), {202: 25, 429: 35})
            self.assertEqual(len(one.stored()), 25)
            self.assertEqual(len(one.outbox(25)), 25)


class Bodies(unittest.TestCase):
    def test_F29_too_large_is_413_and_spends_nothing(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1, MAX_BODY_BYTES=64) as server:
            server.create("contact")
            large = "a=" + "b" * 203
            declared = server.post(body=large)
            self.assertEqual(code(declared), (413, "request_body_too_large"))
            self.assertEqual(error(declared)["details"], {"limit_bytes": 64})
            self.assertEqual(declared.headers["Connection"], "close")
            chunked = server.post(body=iter([large[:60].encode(), large[60:].encode()]))
            self.assertEqual(code(chunked), (413, "request_body_too_large"))
            self.assertEqual(server.post(body="a=" + "b" * 62).status, 202)  # 64 bytes
            self.assertEqual(server.post().status, 429)

    def test_F29_the_default_cap_is_262144(self):
        with Server() as server:
            server.create("contact")
            field = "&".join(f"f{n}=" + "b" * 16000 for n in range(16))
            fits = field + "&pad=" + "c" * (262144 - len(field) - 5)
            self.assertEqual(server.post(body=fits).status, 202)
            self.assertEqual(server.post(body=fits + "c").status, 413)

    def test_413_reads_on_for_at_most_a_second_and_then_closes(self):
        with Server(MAX_BODY_BYTES=64) as server, server.connect() as raw:
            raw.sendall(b"POST /f/contact HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            got, took = raw_answer(raw)
            self.assertTrue(got.startswith(b"HTTP/1.1 413 "), got)
            begin = time.monotonic()
            try:
                while time.monotonic() < begin + 5:
                    raw.sendall(b"x" * 1000)
                    time.sleep(0.05)
                self.fail("the server reads on and on")
            except OSError:
                self.assertLess(took + time.monotonic() - begin, 2)

    def test_a_large_body_that_is_sent_to_the_end_gets_its_413(self):
        with Server(MAX_BODY_BYTES=1000) as server:
            answer = server.post(body="a=" + "b" * 2_000_000)
            self.assertEqual(answer.status, 413)

    def test_an_expectation_is_answered_before_the_body(self):
        with Server(MAX_BODY_BYTES=64) as server:
            server.create("contact")
            head = f"POST /f/contact HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" \
                   f"Content-Type: {URLENCODED}\r\nConnection: close\r\nContent-Length: "
            with server.connect() as raw:
                raw.sendall((head + "3\r\n\r\n").encode())
                self.assertEqual(raw.recv(1000), b"HTTP/1.1 100 Continue\r\n\r\n")
                raw.sendall(b"a=b")
                self.assertTrue(raw_answer(raw)[0].startswith(b"HTTP/1.1 202 "))
            with server.connect() as raw:
                raw.sendall((head + "300\r\n\r\n").encode())
                self.assertTrue(raw_answer(raw)[0].startswith(b"HTTP/1.1 413 "))

    def test_F38_an_accepted_submission(self):
        with Server() as server:
            server.create("contact")
            answer = server.post(body="name=Guest+L&e%2Dmail=a%40b&tag=1&tag=2&empty=&half=%zz")
            self.assertEqual(answer.status, 202)
            said = json.loads(answer.body)
            self.assertEqual(sorted(said), ["delivery", "endpoint_id", "field_count",
                                            "idempotent_replay", "received_at", "submission_id"])
            self.assertEqual(said["endpoint_id"], "contact")
            self.assertEqual(said["field_count"], 6)
            self.assertIs(said["idempotent_replay"], False)
            self.assertEqual(said["delivery"], {"queued": True})
            self.assertRegex(said["received_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertNotIn(b"Guest", answer.body)
            [kept] = server.stored()
            self.assertEqual(kept["submission_id"], said["submission_id"])
            self.assertEqual(kept["fields"], {"name": "Guest L", "e-mail": "a@b", "tag": ["1", "2"],
                                              "empty": "", "half": "%zz"})
            self.assertEqual(server.outbox(1), [kept])

    def test_three_content_types_say_the_same(self):
        data, kind = form_data(('name="a"', "x\r\ny"), ('name="b c"', ""), ('name="b c"', "é"))
        with Server() as server:
            server.create("contact")
            bodies = [
                ("a=x%0D%0Ay&b+c=&b+c=%C3%A9", URLENCODED),
                ("&a=x%0d%0ay&&b%20c&b%20c=%c3%a9&", URLENCODED + "; charset=UTF-8"),
                (data.encode(), kind),
                ("ignored\r\n" + data + "ignored",
                 'Multipart/Form-Data; x=y; Boundary="xx-boundary"'),
                ('{"a": "x\\r\\ny", "b c": ["", "\\u00e9"], "gone": null}', "application/json"),
                ('{"a": "x\\r\\ny", "b c": "", "b c": "é"}', "Application/JSON; charset=utf-8"),
            ]
            for body, content_type in bodies:
                sent = body.encode() if isinstance(body, str) else body
                self.assertEqual(server.post(body=sent, content_type=content_type).status, 202,
                                 body)
            for kept in server.stored():
                self.assertEqual(kept["fields"], {"a": "x\r\ny", "b c": ["", "é"]})

    def test_numbers_and_booleans_are_kept_as_they_are_written(self):
        with Server() as server:
            server.create("contact")
            server.post(body='{"n": -12, "f": 1.50e3, "t": true, "l": [1, false]}',
                        content_type="application/json")
            self.assertEqual(server.stored()[0]["fields"],
                             {"n": "-12", "f": "1.50e3", "t": "true", "l": ["1", "false"]})

    def test_F39_fields_that_break_a_rule_are_422(self):
        data, kind = form_data(('name="f"; filename="x.txt"', "bytes"))
        taken, other_kind = form_data(('name="f"; filename=""', ""))
        cases = [
            ("&".join(f"f{n}=" for n in range(100)), URLENCODED, 202),
            ("&".join(f"f{n}=" for n in range(101)), URLENCODED, 422),
            ("n" * 128 + "=", URLENCODED, 202), ("n" * 129 + "=", URLENCODED, 422),
            ("%C3%A9" * 128 + "=", URLENCODED, 202), ("%C3%A9" * 129 + "=", URLENCODED, 422),
            ("a=" + "v" * 16384, URLENCODED, 202), ("a=" + "v" * 16385, URLENCODED, 422),
            ("a%0Ab=1", URLENCODED, 422), ("a%7F=1", URLENCODED, 422),
            ("a%C2%80=1", URLENCODED, 422), ("=1", URLENCODED, 422),
            ("a=%00", URLENCODED, 422), ("a=%01%0A", URLENCODED, 202),
            ("a=%ff", URLENCODED, 422), ("%ed%a0%80=", URLENCODED, 422),
            (data, kind, 422), (taken, other_kind, 422),
            ('{"a": {"b": 1}}', "application/json", 422), ('{"a": [[1]]}', "application/json", 422),
            ('{"a": "\\u0000"}', "application/json", 422), ("{}", "application/json", 422),
            ('{"a": null}', "application/json", 422),
        ]
        with Server(RATE_LIMIT_IP_REQUESTS=1000) as server:
            server.create("contact")
            for body, content_type, status in cases:
                with self.subTest(body[:40]):
                    answer = server.post(body=body.encode(), content_type=content_type)
                    self.assertEqual(answer.status, status, answer.body)

    def test_bodies_that_are_not_what_their_type_says_are_400(self):
        part = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx"
        multipart = "multipart/form-data; boundary=b"
        cases = [
            ("[1]", "application/json"), ("\"a\"", "application/json"), ("", "application/json"),
            ('{"a":1', "application/json"), ('{"a":1}x', "application/json"),
            (b'{"a":"\xff"}', "application/json"), ("[" * 50000, "application/json"),
            ("", multipart), ("--b", multipart), (part, multipart), (part + "\r\n--b", multipart),
            (part + "\r\n--bx--", multipart), ("--b\r\n\r\nx\r\n--b--", multipart),
            ("--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", multipart),
            ("--b\r\nno colon\r\n\r\nx\r\n--b--", multipart),
            (part + "\r\n--b--", "multipart/form-data"),
            (part + "\r\n--b--", "multipart/form-data; boundary=" + "b" * 71),
        ]
        with Server(RATE_LIMIT_IP_REQUESTS=1000) as server:
            server.create("contact")
            for body, content_type in cases:
                with self.subTest(str(body)[:60]):
                    sent = body if isinstance(body, bytes) else body.encode()
                    answer = server.post(body=sent, content_type=content_type)
                    self.assertEqual(code(answer), (400, "malformed_body"))

    def test_types_and_codings_that_are_not_read_are_415(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1000) as server:
            server.create("contact")
            for kind in ("", "text/plain", "application/jsonp", URLENCODED + "; charset=latin1",
                         "multipart/mixed; boundary=b"):
                answer = server.post(content_type=kind)
                self.assertEqual(code(answer), (415, "unsupported_media_type"), kind)
            answer = server.post(headers={"Content-Encoding": "gzip"})
            self.assertEqual(code(answer), (415, "unsupported_encoding"))


class Idempotency(unittest.TestCase):
    KEY = {"Idempotency-Key": "0123456789abcdef"}

    def test_F40_F41_F42_a_replay_spends_and_changes_nothing(self):
        with Server(RATE_LIMIT_IP_REQUESTS=2) as server:
            server.create("contact")
            first, second, third = (server.post(headers=self.KEY) for _ in range(3))
            self.assertEqual([first.status, second.status, third.status], [202, 202, 429])
            original, replay = json.loads(first.body), json.loads(second.body)
            self.assertEqual(replay, {**original, "idempotent_replay": True})
            self.assertEqual(len(server.stored()), 1)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(len(server.outbox(1)), 1)

    def test_F43_other_content_is_a_conflict_and_the_key_is_of_one_endpoint(self):
        with Server() as server:
            server.create("contact", "other")
            self.assertEqual(server.post(body="a=1&b=2", headers=self.KEY).status, 202)
            for body in ("a=1&b=3", "b=2&a=1", "a=1", "a=1&b=2&c="):
                answer = server.post(body=body, headers=self.KEY)
                self.assertEqual(code(answer), (409, "idempotency_conflict"), body)
            self.assertEqual(json.loads(server.post("other", "b=2", self.KEY).body)
                             ["idempotent_replay"], False)
            # The same content in another type is the same content.
            again = server.post(body='{"a": 1, "b": 2}', headers=self.KEY,
                                content_type="application/json")
            self.assertIs(json.loads(again.body)["idempotent_replay"], True)

    def test_F44_a_key_that_is_no_key_is_400_after_both_limits(self):
        wrong = ["", "a" * 15, "a" * 256, "0123456789 abcdef", "0123456789abcd\xe9f"]
        with Server(RATE_LIMIT_IP_REQUESTS=1000,
                    RATE_LIMIT_ENDPOINT_REQUESTS=len(wrong) + 2) as server:
            server.create("contact")
            for key in wrong:
                answer = server.post(headers={"Idempotency-Key": key})
                self.assertEqual(code(answer), (400, "invalid_idempotency_key"), key)
            for key in ("a" * 16, "!~" * 127 + "x"):
                self.assertEqual(server.post(headers={"Idempotency-Key": key}).status, 202)
            self.assertEqual(server.post().status, 429)

    def test_F44_of_many_at_once_one_is_the_original(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1000) as server:
            server.create("contact")
            answers = []
            crew = [threading.Thread(target=lambda: answers.append(server.post(headers=self.KEY)))
                    for _ in range(16)]
            for each in crew:
                each.start()
            for each in crew:
                each.join()
            said = [json.loads(a.body) for a in answers]
            self.assertEqual(len({s["submission_id"] for s in said}), 1)
            self.assertEqual(sum(not s["idempotent_replay"] for s in said), 1)
            self.assertEqual(len(server.stored()), 1)

    def test_a_replay_after_a_restart_is_a_replay(self):
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder:
            with Server(folder) as server:
                server.create("contact")
                first = json.loads(server.post(headers=self.KEY).body)
                self.assertEqual(server.stop(), 0)
            with Server(folder) as server:
                again = json.loads(server.post(headers=self.KEY).body)
                self.assertEqual(again, {**first, "idempotent_replay": True})


class ClientAddress(unittest.TestCase):
    def statuses(self, settings, headers):
        with Server(RATE_LIMIT_IP_REQUESTS=1, **settings) as server:
            server.create("contact")
            return [server.post(headers={"X-Forwarded-For": value} if value is not None else {})
                    .status for value in headers]

    def test_F45_without_hops_the_header_is_ignored(self):
        self.assertEqual(self.statuses({}, ["203.0.113.1", "203.0.113.2"]), [202, 429])

    def test_F46_F47_F48_with_one_hop_the_last_element_is_the_client(self):
        forwarded = ["1.1.1.1, 203.0.113.9", "2.2.2.2, 203.0.113.9", "2.2.2.2, 203.0.113.8",
                     " 1.1.1.1 ,, 203.0.113.8 ,", "203.0.113.7"]
        self.assertEqual(self.statuses({"TRUSTED_PROXY_HOPS": 1}, forwarded),
                         [202, 429, 202, 429, 202])

    def test_F46_F47_a_header_that_is_missing_or_short_is_the_peer(self):
        self.assertEqual(self.statuses({"TRUSTED_PROXY_HOPS": 2},
                                       [None, "203.0.113.1", "", "203.0.113.2"]),
                         [202, 429, 429, 429])
        self.assertEqual(self.statuses({"TRUSTED_PROXY_HOPS": 2},
                                       ["1.1.1.1, 203.0.113.1", "1.1.1.1, 203.0.113.2",
                                        "203.0.113.1"]), [202, 429, 202])

    def test_spellings_of_one_address_are_one_client(self):
        forwarded = ["203.0.113.9", "203.0.113.9:4321", "::ffff:203.0.113.9",
                     "[::ffff:203.0.113.9]:1"]
        self.assertEqual(self.statuses({"TRUSTED_PROXY_HOPS": 1}, forwarded), [202, 429, 429, 429])

    def test_IPv6_is_counted_by_prefix(self):
        forwarded = ["2001:db8:1:1::1", "2001:DB8:1:1:ffff::2", "2001:db8:1:2::1"]
        self.assertEqual(self.statuses({"TRUSTED_PROXY_HOPS": 1}, forwarded), [202, 429, 202])
        self.assertEqual(self.statuses({"TRUSTED_PROXY_HOPS": 1, "IPV6_PREFIX": 48}, forwarded),
                         [202, 429, 429])

    def test_trusted_ranges_are_walked_past_and_others_are_not_believed(self):
        forwarded = ["203.0.113.1, 10.0.0.7", "203.0.113.2, 10.0.0.8", "6.6.6.6, 203.0.113.1"]
        self.assertEqual(self.statuses({"TRUSTED_PROXIES": "127.0.0.0/8, 10.0.0.0/8"}, forwarded),
                         [202, 202, 429])
        self.assertEqual(self.statuses({"TRUSTED_PROXIES": "192.0.2.0/24"}, forwarded),
                         [202, 429, 429])

    def test_F51_all_clients_of_a_unix_socket_share_one_bucket(self):
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder, \
                Server(folder, LISTEN="unix:" + folder + "/socket",
                       RATE_LIMIT_IP_REQUESTS=1) as server:
            self.assertEqual(server.unix, folder + "/socket")
            for expected in (b"404", b"429"):
                with socket.socket(socket.AF_UNIX) as raw:
                    raw.connect(server.unix)
                    raw.sendall(b"POST /f/unknown HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                                b"Content-Length: 0\r\n\r\n")
                    self.assertEqual(raw_answer(raw)[0].split()[1], expected)

    def test_F53_no_address_is_stored_or_told(self):
        with Server(TRUSTED_PROXY_HOPS=1, COUNTERS="database",
                    RATE_LIMIT_IP_REQUESTS=1) as server:
            server.create("contact")
            for _ in range(2):
                answer = server.post(headers={"X-Forwarded-For": "203.0.113.77"})
                self.assertNotIn(b"203.0.113.77", answer.body)
            server.stop()
            for name in os.listdir(server.folder):
                with open(os.path.join(server.folder, name), "rb") as file:
                    self.assertNotIn(b"203.0.113.77", file.read(), name)
            self.assertNotIn(b"203.0.113.77", DATABASES.dump(server.folder))
            self.assertNotIn("203.0.113.77", server.told())


class Management(unittest.TestCase):
    def test_without_the_token_everything_is_401(self):
        with Server() as server:
            for given in (None, "", "Bearer", "Bearer ", "Bearer " + TOKEN[:-1],
                          "Bearer " + TOKEN + "x", "Bearer x" + TOKEN[1:], "Basic " + TOKEN, TOKEN):
                for method, path in (("GET", "/endpoints"), ("POST", "/endpoints"),
                                     ("GET", "/nothing"), ("DELETE", "/endpoints/contact")):
                    headers = {} if given is None else {"Authorization": given}
                    answer = server.ask(method, "/api" + path, "{}", headers)
                    self.assertEqual(code(answer), (401, "unauthorized"), (given, method, path))
                    self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
            answer = server.ask("GET", "/api/endpoints",
                                headers={"Authorization": "bearer  " + TOKEN})
            self.assertEqual(answer.status, 200)

    def test_endpoints_are_made_listed_and_changed(self):
        with Server() as server:
            status, made = server.manage("POST", "/endpoints", {"id": "contact"})
            self.assertEqual((status, made["id"], made["active"]), (201, "contact", True))
            self.assertEqual(server.manage("POST", "/endpoints", {"id": "contact"})[0], 409)
            server.create("a-1", "b_2", "c33", active=False)
            status, page = server.manage("GET", "/endpoints?limit=3")
            self.assertEqual([e["id"] for e in page["endpoints"]], ["a-1", "b_2", "c33"])
            self.assertEqual(page["next"], "c33")
            _, page = server.manage("GET", "/endpoints?limit=3&after=c33")
            self.assertEqual(([e["id"] for e in page["endpoints"]], page["next"]),
                             (["contact"], None))
            self.assertEqual(server.manage("GET", "/endpoints/contact")[1], made)

            for active, expected in ((False, 409), (True, 202)):
                status, changed = server.manage("PATCH", "/endpoints/contact", {"active": active})
                self.assertEqual((status, changed), (200, {**made, "active": active}))
                self.assertEqual(server.post().status, expected)
            self.assertEqual(server.manage("PATCH", "/endpoints/nobody", {"active": True})[0], 404)
            self.assertEqual(server.manage("GET", "/endpoints/nobody")[0], 404)

    def test_F39_what_is_no_endpoint_is_422_and_what_is_no_object_is_400(self):
        with Server() as server:
            for name in ("ab", "a" * 65, "-ab", "ab-", "_ab", "a b", "Abc", "äbc", "a.b", 7, None):
                answer = server.ask("POST", "/api/endpoints", json.dumps({"id": name}),
                                    {"Authorization": "Bearer " + TOKEN})
                self.assertEqual(code(answer), (422, "invalid_endpoint_id"), name)
            for body in ("", "{", "[]", "7", "{}x"):
                answer = server.ask("POST", "/api/endpoints", body,
                                    {"Authorization": "Bearer " + TOKEN})
                self.assertEqual(code(answer), (400, "malformed_body"), body)
            for value in ({"id": "abc", "active": 1}, {"id": "abc", "actve": True}, {}):
                self.assertEqual(server.manage("POST", "/endpoints", value)[0], 422)
            server.create("abc", "a" * 64, "0-9")
            for value in ({}, {"active": "yes"}, {"id": "abc"}):
                self.assertEqual(server.manage("PATCH", "/endpoints/abc", value)[0], 422)

    def test_submissions_come_in_pages_the_oldest_first(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1000) as server:
            server.create("contact", "other")
            ids = []
            for number in range(7):
                ids.append(json.loads(server.post(body=f"n={number}").body)["submission_id"])
                server.post("other")
            seen, after = [], ""
            sizes = []
            while after is not None:
                status, page = server.manage(
                    "GET", f"/endpoints/contact/submissions?limit=3&after={after}")
                self.assertEqual(status, 200)
                seen += page["submissions"]
                sizes.append(len(page["submissions"]))
                after = page["next"]
            self.assertEqual(sizes, [3, 3, 1])
            self.assertEqual([s["submission_id"] for s in seen], ids)
            self.assertEqual([s["fields"]["n"] for s in seen], [str(n) for n in range(7)])
            for query in ("limit=0", "limit=1001", "limit=x", "limit=-1", "after=nothing"):
                self.assertEqual(server.manage(
                    "GET", "/endpoints/contact/submissions?" + query)[0], 422, query)
            other = server.stored("other")[0]["submission_id"]
            self.assertEqual(server.manage(
                "GET", "/endpoints/contact/submissions?after=" + other)[0], 422)
            self.assertEqual(server.manage("GET", "/endpoints/nobody/submissions")[0], 404)

    def test_wrong_methods_are_405_and_say_what_is_right(self):
        with Server() as server:
            server.create("contact")
            bearer = {"Authorization": "Bearer " + TOKEN}
            for method, path, allowed in (
                    ("POST", "/health", "GET, HEAD"), ("DELETE", "/f/contact", "GET, HEAD, POST"),
                    ("OPTIONS", "/f/contact", "GET, HEAD, POST"),
                    ("DELETE", "/api/endpoints", "GET, HEAD, POST"),
                    ("PUT", "/api/endpoints/contact", "GET, HEAD, PATCH"),
                    ("POST", "/api/endpoints/contact/submissions", "GET, HEAD")):
                answer = server.ask(method, path, headers=bearer)
                self.assertEqual((answer.status, answer.headers["Allow"]), (405, allowed), path)
            for path in ("/", "/f", "/api/nothing", "/healthy", "/api/endpoints/contact/x"):
                self.assertEqual(server.ask("GET", path, headers=bearer).status, 404, path)


class Http(unittest.TestCase):
    def test_a_HEAD_has_the_headers_of_the_GET_and_no_body(self):
        with Server() as server:
            server.create("contact")
            for path in ("/health", "/f/contact", "/f/unknown"):
                get, head = server.ask("GET", path), server.ask("HEAD", path)
                self.assertEqual((head.status, head.body), (get.status, b""))
                for name in ("Content-Length", "Content-Type", "Cache-Control"):
                    self.assertEqual(head.headers[name], get.headers[name])
                self.assertEqual(int(get.headers["Content-Length"]), len(get.body))

    def test_the_form_works_without_a_script(self):
        with Server() as server:
            server.create("contact")
            server.create("disabled", active=False)
            page = server.ask("GET", "/f/contact")
            self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
            text = page.body.decode()
            self.assertNotIn("<script", text)
            action = re.search(r'<form method="post" action="([^"]+)">', text)[1]
            names = re.findall(r' name="([^"]+)"', text)
            sent = "&".join(name + "=x" for name in names)
            self.assertEqual(server.ask("POST", action, sent, {"Content-Type": URLENCODED}).status,
                             202)
            self.assertEqual(code(server.ask("GET", "/f/unknown")), (404, "endpoint_not_found"))
            self.assertEqual(code(server.ask("GET", "/f/<b>")), (404, "invalid_endpoint_id"))
            self.assertEqual(code(server.ask("GET", "/f/disabled")), (409, "endpoint_inactive"))

    def test_every_response_has_a_date(self):
        with Server() as server:
            self.assertRegex(server.ask("GET", "/health").headers["Date"],
                             r"^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$")

    def test_a_header_that_is_too_large_is_431(self):
        with Server(MAX_HEADER_BYTES=2048) as server:
            self.assertEqual(server.ask("GET", "/health", headers={"X": "y" * 1500}).status, 200)
            for bytes_sent in (b"X: " + b"y" * 3000 + b"\r\n", b"X: y\r\n" * 500, b"y" * 100000):
                with server.connect() as raw:
                    raw.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n" + bytes_sent)
                    self.assertTrue(raw_answer(raw)[0].startswith(b"HTTP/1.1 431 "))

    def test_what_is_not_HTTP_or_is_doubtful_is_refused_and_the_connection_ends(self):
        cases = [
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
            (b"GET /health\r\n\r\n", b"400"), (b"GET /health HTTP/2.0\r\n\r\n", b"400"),
            (b"GET /health HTTP/1.1\r\n\r\n", b"400"),
            (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
            (b"GET /health HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", b"400"),
            (b"POST /f/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
             b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
            (b"POST /f/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
             b"400"),
            (b"POST /f/a HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", b"400"),
            (b"POST /f/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", b"400"),
            (b"POST /f/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", b"501"),
            (b"POST /f/a HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 3\r\n\r\n",
             b"417"),
        ]
        with Server() as server:
            for sent, status in cases:
                with self.subTest(sent[:60]), server.connect() as raw:
                    raw.sendall(sent)
                    raw.shutdown(socket.SHUT_WR)
                    got, _ = raw_answer(raw)
                    self.assertEqual(got.split()[1:2], [status], got)
                    self.assertEqual(got.count(b"HTTP/1.1 "), 1)
                    self.assertIn(b"Connection: close\r\n", got)

    def test_requests_sent_at_once_are_answered_in_order(self):
        with Server() as server, server.connect() as raw:
            server.create("contact")
            post = b"POST /f/contact HTTP/1.1\r\nHost: a\r\nContent-Type: " + \
                   URLENCODED.encode() + b"\r\nContent-Length: 3\r\n\r\na=b"
            last = b"GET /f/unknown HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            raw.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n" + post + post + last)
            got, _ = raw_answer(raw)
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", got), [b"200", b"202", b"202", b"404"])

    def test_HTTP_1_0_is_answered_and_closed(self):
        with Server() as server, server.connect() as raw:
            raw.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            got, _ = raw_answer(raw)
            self.assertTrue(got.startswith(b"HTTP/1.0 200 OK\r\n"), got)


class SlowClients(unittest.TestCase):
    def assert_ends(self, server, sent, status, least, most):
        with server.connect() as raw:
            raw.sendall(sent)
            got, took = raw_answer(raw)
            self.assertEqual(got.split()[1:2], [status] if status else [], got)
            self.assertGreater(took, least)
            self.assertLess(took, most)

    def test_every_step_has_a_deadline(self):
        with Server(HEADER_SECONDS=1, BODY_SECONDS=1, IDLE_SECONDS=1) as server:
            body = b"POST /f/a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"
            chunk = b"POST /f/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"
            cases = [(b"", None), (b"GET /he", b"408"), (body + b"abc", b"408"), (chunk, b"408")]
            crew = [threading.Thread(target=self.note, args=(server, sent, status, 0.7, 4))
                    for sent, status in cases]
            self.failures = []
            for each in crew:
                each.start()
            for each in crew:
                each.join()
            self.assertEqual(self.failures, [])

    def note(self, *arguments):
        try:
            self.assert_ends(*arguments)
        except Exception as failed:  # told by the thread that joins
            self.failures.append((arguments[1], failed))

    def test_a_byte_now_and_then_does_not_move_the_deadline(self):
        with Server(HEADER_SECONDS=1) as server, server.connect() as raw:
            begin = time.monotonic()
            raw.sendall(b"GET /health HTTP/1.1\r\n")
            try:
                while time.monotonic() < begin + 5:
                    raw.sendall(b"A: b\r\n")
                    time.sleep(0.1)
            except OSError:
                pass
            self.assertLess(time.monotonic() - begin, 4)

    def test_a_kept_connection_is_closed_when_idle(self):
        with Server(IDLE_SECONDS=1) as server, server.connect() as raw:
            raw.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            got, took = raw_answer(raw)
            self.assertTrue(got.startswith(b"HTTP/1.1 200 "))
            self.assertLess(took, 3)

    def test_slow_clients_do_not_keep_others_waiting(self):
        with Server() as server:
            slow = [server.connect() for _ in range(200)]
            for raw in slow:
                raw.sendall(b"POST /f/a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
            begin = time.monotonic()
            self.assertEqual(server.ask("GET", "/health").status, 200)
            self.assertLess(time.monotonic() - begin, 2)
            for raw in slow:
                raw.close()

    def test_connections_over_the_bound_are_turned_away_and_a_place_comes_free(self):
        with Server(MAX_CONNECTIONS=5) as server:
            held = [server.connect() for _ in range(5)]
            for raw in held:
                raw.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertTrue(raw.recv(1000).startswith(b"HTTP/1.1 200 "))
            with server.connect() as raw:
                self.assertTrue(raw_answer(raw)[0].startswith(b"HTTP/1.1 503 "))
            held.pop().close()
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                try:
                    if server.ask("GET", "/health").status == 200:
                        break
                except OSError:
                    pass
            self.assertEqual(server.ask("GET", "/health").status, 200)
            for raw in held:
                raw.close()

    def test_one_peer_has_its_own_bound(self):
        with Server(MAX_CONNECTIONS_PER_PEER=1) as server:
            with server.connect() as raw:
                raw.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                raw.recv(1000)
                with server.connect() as second:
                    self.assertTrue(raw_answer(second)[0].startswith(b"HTTP/1.1 503 "))
                self.assertEqual(server.ask("GET", "/health", source="127.0.0.2").status, 200)


class Durability(unittest.TestCase):
    def flood(self, server, seconds, end):
        """Submissions over several connections; what was answered with 202, and the rest."""
        accepted, lock = [], threading.Lock()

        def one():
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            while True:
                try:
                    connection.request("POST", "/f/contact", "a=b", {"Content-Type": URLENCODED})
                    answer = connection.getresponse()
                    body = answer.read()
                except (OSError, http.client.HTTPException):
                    break
                with lock:
                    if answer.status == 202:
                        accepted.append(json.loads(body)["submission_id"])
                if answer.headers["Connection"] == "close":
                    break
            connection.close()

        crew = [threading.Thread(target=one) for _ in range(16)]
        for each in crew:
            each.start()
        time.sleep(seconds)
        end()
        for each in crew:
            each.join()
        return accepted

    LIMITS = {"RATE_LIMIT_IP_REQUESTS": 10_000_000, "RATE_LIMIT_ENDPOINT_REQUESTS": 10_000_000}

    def test_after_kill_9_under_load_every_202_is_in_the_database_and_in_the_outbox(self):
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder:
            accepted = []
            for _ in range(3):
                with Server(folder, **self.LIMITS) as server:
                    if not accepted:
                        server.create("contact")
                    accepted += self.flood(server, 0.7, lambda: server.stop(signal.SIGKILL))
            self.assertGreater(len(accepted), 100)
            with Server(folder, **self.LIMITS) as server:
                kept = [each["submission_id"] for each in server.stored()]
                self.assertEqual(set(accepted) - set(kept), set())
                self.assertEqual(len(kept), len(set(kept)))
                DATABASES.let_claims_lapse(folder)
                self.assertEqual(server.stop(), 0)
                with open(folder + "/outbox", encoding="utf-8") as file:
                    lines = file.read().splitlines()
            delivered = set()
            for line in lines:
                try:
                    delivered.add(json.loads(line)["submission_id"])
                except ValueError:
                    pass  # cut off by a kill, and written again
            self.assertEqual(set(kept) - delivered, set())
            self.assertLess(len(lines), 2 * len(kept))

    def test_SIGTERM_under_load_answers_what_began_and_delivers_it_once(self):
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder:
            with Server(folder, **self.LIMITS) as server:
                server.create("contact")
                ended = []
                accepted = self.flood(server, 0.7, lambda: ended.append(server.stop()))
                self.assertEqual(ended, [0])
                lines = [each["submission_id"] for each in server.outbox(len(accepted))]
            self.assertGreater(len(accepted), 100)
            self.assertEqual(sorted(lines), sorted(accepted))
            with Server(folder) as server:
                self.assertEqual(len(server.stored()), len(accepted))
                self.assertEqual(len(server.outbox(len(accepted))), len(accepted))

    def test_SIGTERM_answers_a_request_that_is_still_arriving(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server() as server, server.connect() as raw, server.connect() as idle:
                server.create("contact")
                idle.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                idle.recv(1000)
                raw.sendall(b"POST /f/contact HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                            b"Content-Type: " + URLENCODED.encode() + b"\r\n\r\na=")
                time.sleep(0.2)
                server.process.send_signal(number)
                self.assertEqual(raw_answer(idle)[0], b"")
                with self.assertRaises(OSError):
                    for _ in range(50):
                        server.connect().close()
                        time.sleep(0.02)
                raw.sendall(b"b")
                got, _ = raw_answer(raw)
                self.assertTrue(got.startswith(b"HTTP/1.1 202 "), got)
                self.assertIn(b"Connection: close", got)
                self.assertEqual(server.process.wait(timeout=20), 0)
                self.assertEqual(len(server.outbox(1)), 1)

    def test_SIGTERM_does_not_wait_for_ever(self):
        with Server(SHUTDOWN_SECONDS=1) as server, server.connect() as raw:
            raw.sendall(b"POST /f/contact HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=")
            time.sleep(0.2)
            begin = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - begin, 4)

    def test_a_line_that_was_cut_off_does_not_swallow_the_next(self):
        with tempfile.TemporaryDirectory(prefix="weir-forms-") as folder:
            with open(folder + "/outbox", "w", encoding="utf-8") as file:
                file.write('{"submission_id":"cut o')
            with Server(folder) as server:
                server.create("contact")
                said = json.loads(server.post().body)
                self.assertEqual(server.stop(), 0)
            with open(folder + "/outbox", encoding="utf-8") as file:
                lines = file.read().splitlines()
            self.assertEqual(len(lines), 2)
            self.assertEqual(json.loads(lines[1])["submission_id"], said["submission_id"])

    def test_an_outbox_that_is_moved_away_is_made_again(self):
        with Server() as server:
            server.create("contact")
            server.post()
            self.assertEqual(len(server.outbox(1)), 1)
            # Until the queue is empty, a round that is under way may still be marking its lines.
            os.rename(server.folder + "/outbox", server.folder + "/outbox.1")
            second = json.loads(server.post().body)["submission_id"]
            self.assertEqual(server.stop(), 0)
            self.assertEqual(server.outbox(1)[-1]["submission_id"], second)


class LockedFile(unittest.TestCase):
    def test_a_database_that_is_locked_is_a_503_and_nothing_is_kept(self):
        with Server() as server:
            server.create("contact")
            lock = sqlite3.connect(server.folder + "/forms.db", isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
            answer = server.post()
            lock.execute("ROLLBACK")
            lock.close()
            self.assertEqual(code(answer), (503, "storage_unavailable"))
            self.assertNotIn("Retry-After", answer.headers)
            self.assertEqual(server.stored(), [])
            self.assertEqual(server.post().status, 202)
            self.assertEqual(server.ask("GET", "/health").status, 200)


class FormsNginx(Nginx):
    """An nginx that posts to a form through itself."""

    def post(self, source="127.0.0.1", forwarded=None, body="a=b", endpoint="contact"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20,
                                                source_address=(source, 0))
        headers = {"Content-Type": URLENCODED}
        if forwarded is not None:
            headers["X-Forwarded-For"] = forwarded
        try:
            connection.request("POST", "/f/" + endpoint, body, headers)
            got = connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        finally:
            connection.close()


class BehindNginx(unittest.TestCase):
    def setUp(self):
        self.binary = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not self.binary:
            self.skipTest("nginx is not installed")

    def test_F46_F48_clients_are_told_apart_and_forgeries_are_not_believed(self):
        with Server(RATE_LIMIT_IP_REQUESTS=2, TRUSTED_PROXY_HOPS=1) as server, \
                FormsNginx(self.binary, server.port) as nginx:
            server.create("contact")
            for source in ("127.0.0.1", "127.0.0.2"):
                statuses = [nginx.post(source).status for _ in range(3)]
                self.assertEqual(statuses, [202, 202, 429], source)
            for forged in ("203.0.113.7", "203.0.113.8, 10.0.0.1", "not an address", ", ,", "::1",
                           "1.1.1.1," * 300):
                self.assertEqual(nginx.post(forwarded=forged).status, 429, forged[:40])

    def test_F50_without_hops_all_visitors_share_one_bucket_and_a_warning_says_so(self):
        with Server(RATE_LIMIT_IP_REQUESTS=2) as server, \
                FormsNginx(self.binary, server.port) as nginx:
            server.create("contact")
            statuses = [nginx.post(f"127.0.0.{n}").status for n in (1, 2, 3)]
            self.assertEqual(statuses, [202, 202, 429])
            self.assertIn("forwarded_header_ignored", server.told())

    def test_F49_one_hop_too_many_lets_clients_choose(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1, TRUSTED_PROXY_HOPS=2) as server, \
                FormsNginx(self.binary, server.port) as nginx:
            server.create("contact")
            statuses = [nginx.post(forwarded=f"203.0.113.{n}").status for n in (1, 1, 2)]
            self.assertEqual(statuses, [202, 429, 202])

    def test_ranges_do_the_same_without_a_number(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1, TRUSTED_PROXIES="127.0.0.1") as server, \
                FormsNginx(self.binary, server.port) as nginx:
            server.create("contact")
            self.assertEqual([nginx.post("127.0.0.2", forwarded=f"203.0.113.{n}").status
                              for n in (1, 2)], [202, 429])

    def test_413_and_429_arrive_as_they_are(self):
        with Server(RATE_LIMIT_IP_REQUESTS=1, TRUSTED_PROXY_HOPS=1,
                    MAX_BODY_BYTES=1000) as server, \
                FormsNginx(self.binary, server.port) as nginx:
            server.create("contact")
            for size in (2000, 500_000):
                self.assertEqual(code(nginx.post(body="a=" + "b" * size)),
                                 (413, "request_body_too_large"))
            self.assertEqual(nginx.post().status, 202)
            refused = nginx.post()
            self.assertEqual(code(refused), (429, "rate_limit_exceeded"))
            self.assertEqual(refused.headers["Retry-After"],
                             str(error(refused)["details"]["retry_after_seconds"]))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

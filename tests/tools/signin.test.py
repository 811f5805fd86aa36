# SPDX-License-Identifier: BSL-1.0
"""signin.test.py PROGRAM: the sign-in server as processes, over real sockets.

Where minutes matter the server's clock stands still at an instant that the test writes down
(libfaketime); without that library those tests are skipped. Each client of a test has an address of
its own out of 127.0.0.0/8. What concerns the store is asked of a file and of a private PostgreSQL.
"""

import collections
import datetime
import glob
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from urllib.parse import urlencode

import chromium

PROGRAM = ""
TOOLS = pathlib.Path(__file__).resolve().parent
README = TOOLS.parent.parent / "examples" / "signin" / "README.md"
TOKEN = "operator-token-0123456789"
SECRET = "0123456789abcdef0123456789abcdef"
OWNER, OTHER, NOBODY = "owner@example.org", "other@example.org", "ghost@example.org"
TOO_MANY = b'{"error":"too_many"}'
CLOCK = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
NOON = datetime.datetime(2026, 1, 1, 12)

Answer = collections.namedtuple("Answer", "status headers body")


def environment(folder, **settings):
    """A clean one: nothing of the caller's own SIGNIN_ variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SIGNIN_")}
    ours = {"SIGNIN_LISTEN": "127.0.0.1:0", "SIGNIN_FOLDER": folder, "SIGNIN_SECRET": SECRET,
            "SIGNIN_ADMIN_TOKEN": TOKEN}
    given = {"SIGNIN_" + name: str(value) for name, value in settings.items()}
    return {**kept, **ours, **given}


def try_to_start(*arguments, **settings):
    """With settings or arguments with which it does not serve."""
    with tempfile.TemporaryDirectory(prefix="weir-signin-") as folder:
        return subprocess.run([PROGRAM, *arguments], env=environment(folder, **settings),
                              capture_output=True, text=True, timeout=20)


class Folder:
    """A place for servers that share everything; with a clock, they stand still at `at`."""

    def __init__(self, clock=False, database=None):
        self.made = tempfile.TemporaryDirectory(prefix="weir-signin-")
        self.path = self.made.name
        self.database = {"DATABASE": database} if database else {}
        self.clock = {}
        pathlib.Path(self.path, "accounts").write_text(f"# people\n{OWNER}\n {OTHER.upper()} \n")
        if clock:
            self.clock = {"LD_PRELOAD": CLOCK, "FAKETIME_TIMESTAMP_FILE": self.path + "/clock",
                          "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                          "TZ": "UTC", "ASAN_OPTIONS": "verify_asan_link_order=0"}
            self.at(0)

    def at(self, minutes):
        """Minutes after noon."""
        shown = NOON + datetime.timedelta(minutes=minutes)
        part = pathlib.Path(self.path, "clock.part")
        part.write_text(shown.strftime("%Y-%m-%d %H:%M:%S\n"))
        part.rename(self.path + "/clock")

    def mails(self, to=None):
        found = [pathlib.Path(name).read_text() for name in glob.glob(self.path + "/outbox/*.eml")]
        return [text for text in found if to is None or f"\nTo: {to}\n" in text]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.made.cleanup()


class Server:
    """The program in a folder and on a port of its own, until the with block ends."""

    def __init__(self, folder=None, **settings):
        self.own = None if folder else Folder()
        self.folder = folder or self.own
        self.settings = settings

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        chosen = {**self.folder.database, **self.settings}
        self.process = subprocess.Popen(
            [PROGRAM], env={**environment(self.folder.path, **chosen), **self.folder.clock},
            stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        said = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
        assert said, f"the first line is {line!r}; {self.told()}"
        self.port = int(said[1])
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
        if self.own:
            self.own.__exit__()

    def ask(self, method, path, body=None, headers=None, source="127.0.0.1"):
        sent = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20,
                                                source_address=(source, 0))
        try:
            connection.request(method, path, body=body, headers=sent if body else headers or {})
            got = connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        finally:
            connection.close()

    def form(self, path, source="127.0.0.1", cookie=None, accept=None, **fields):
        headers = {}
        if cookie:
            headers["Cookie"] = cookie
        if accept:
            headers["Accept"] = accept
        return self.ask("POST", path, form_body(**fields), headers, source)

    def send_code(self, user=OWNER, source="127.0.0.1", cookie=None):
        """The ticket and the code that was mailed."""
        before = len(self.folder.mails(user))
        got = self.form("/code", source, cookie, user=user)
        assert got.status == 200, got
        ticket = json.loads(got.body)["ticket"]
        return ticket, self.newest(user, before)

    def newest(self, user, before):
        deadline = time.monotonic() + 10
        while len(self.folder.mails(user)) == before:
            assert time.monotonic() < deadline, "no mail came"
            time.sleep(0.01)
        files = sorted(glob.glob(self.folder.path + "/outbox/*.eml"), key=os.path.getmtime)
        texts = [text for text in (pathlib.Path(name).read_text() for name in files)
                 if f"\nTo: {user}\n" in text]
        return re.search(r"Your code is (\d{6})\n", texts[-1])[1]

    def guess(self, user=OWNER, source="127.0.0.1", cookie=None, code="x"):
        """The status of a wrong code's answer."""
        got = self.form("/verify", source, cookie, user=user, ticket="0.0.0", code=code)
        if got.status == 403:
            assert got.body == b'{"error":"wrong_code"}', got
        elif got.status == 429:
            assert got.body == TOO_MANY, got
        return got.status

    def guesses(self, count, **who):
        return [self.guess(**who) for _ in range(count)]

    def wait_of(self, user=OWNER, source="127.0.0.1"):
        got = self.form("/verify", source, user=user, ticket="0.0.0", code="x")
        assert got.status == 429, got
        return int(got.headers["Retry-After"])

    def sign_in(self, user=OWNER, source="127.0.0.1", cookie=None):
        """The cookie of the device that has signed in."""
        ticket, code = self.send_code(user, source, cookie)
        got = self.form("/verify", source, cookie, user=user, ticket=ticket, code=code)
        assert got.status == 200, got
        return got.headers["Set-Cookie"].split(";")[0]

    def manage(self, method, path, **fields):
        got = self.ask(method, "/admin" + path, form_body(**fields) if fields else None,
                       {"Authorization": "Bearer " + TOKEN})
        return got.status, json.loads(got.body)

    def locked(self):
        status, found = self.manage("GET", "/locked")
        assert status == 200, found
        return found["locked"]


def form_body(**fields):
    return urlencode(fields)


def fields_of(answer):
    """All that a client can see, but for the ticket, which is another one each time."""
    shown = re.sub(rb"\d+\.[0-9a-f]{32}\.[0-9a-f]{64}", b"TICKET", answer.body)
    return answer.status, sorted(answer.headers.items()), shown


def all_at_once(servers, count, **who):
    """Statuses of so many guesses that are made at one moment."""
    gate, found = threading.Barrier(count), []

    def one(server):
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        body = form_body(ticket="0.0.0", code="x", **who).encode()
        gate.wait(timeout=30)
        raw.sendall(b"POST /verify HTTP/1.1\r\nHost: x\r\n"
                    b"Content-Type: application/x-www-form-urlencoded\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        got = b""
        while chunk := raw.recv(65536):
            got += chunk
        raw.close()
        found.append(int(got.split()[1]))

    threads = [threading.Thread(target=one, args=(servers[n % len(servers)],))
               for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return collections.Counter(found)


class Settings(unittest.TestCase):
    def test_each_wrong_value_is_told_in_one_line_and_ends_with_2(self):
        cases = [("LISTEN", "8082"), ("FAILURES", "0"), ("FAILURES", "22"),
                 ("WINDOW_SECONDS", "15m"), ("FIRST_SECONDS", "899"), ("LONGEST_SECONDS", "10"),
                 ("FAILURES_A_DAY", "22"), ("FAILURES_PER_USER", "0"),
                 ("FAILURES_PER_ADDRESS", "-1"), ("CODES", "0"), ("CODE_SECONDS", "0"),
                 ("SECRET", "short"), ("ADMIN_TOKEN", "short"), ("DATABASE", "mysql://x"),
                 ("SMTP_URL", "http://x"), ("SMTP_TLS", "maybe"), ("MAIL_FROM", "a@b\r\nBcc: c"),
                 ("TRUSTED_PROXY_HOPS", "-1"), ("THREADS", "0")]
        for name, value in cases:
            with self.subTest(f"{name}={value}"):
                done = try_to_start(**{name: value})
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn("allowed is", done.stderr)
                self.assertEqual(done.stdout, "")
        for name in ("SECRET", "ADMIN_TOKEN"):
            self.assertNotIn("short", try_to_start(**{name: "short"}).stderr)

    def test_a_line_of_the_accounts_that_is_no_address_is_named(self):
        with Folder() as folder:
            pathlib.Path(folder.path, "accounts").write_text("a@example.org\nno address\n")
            done = subprocess.run([PROGRAM], env=environment(folder.path), capture_output=True,
                                  text=True, timeout=20)
            self.assertEqual(done.returncode, 2)
            self.assertIn("line 2", done.stderr)

    def test_the_table_names_all_settings_and_no_other(self):
        table = set(re.findall(r"^\| `SIGNIN_([A-Z0-9_]+)` \|", README.read_text(), re.MULTILINE))
        self.assertGreater(len(table), 20)
        with Server(**{name: "" for name in table - {"LISTEN", "FOLDER"}}) as server:
            self.assertNotIn("is no setting", server.told())
        source = "".join(path.read_text() for path in README.parent.glob("*.cpp"))
        self.assertEqual(set(re.findall(r'"SIGNIN_([A-Z0-9_]+)"', source)), table)

    def test_a_setting_that_is_none_is_told(self):
        with Server(FAILURE="5") as server:
            self.assertIn("SIGNIN_FAILURE is no setting", server.told())

    def test_each_limit_states_what_holds_where_nothing_can_be_counted(self):
        done = try_to_start("--limits")
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 10)
        for line in lines:
            self.assertRegex(line, r"^signin\.\S+ \d+ in \d+ s, missing_key reject, "
                                   r"on_outage fail_closed$")
        told = set(re.findall(r"^\| `(signin\.[a-z./2]+)` \|", README.read_text(), re.MULTILINE))
        self.assertEqual({line.split()[0] for line in lines}, told)
        self.assertIn("signin.pair 5 in 900 s", done.stdout)

    def test_without_settings_it_starts_warns_of_its_secret_and_keeps_it(self):
        with Folder() as folder:
            os.remove(folder.path + "/accounts")
            bare = {"ADMIN_TOKEN": "", "SECRET": ""}
            with Server(folder, **bare) as server:
                self.assertRegex(server.process.stdout.readline(), r"^admin token: [0-9a-f]{32}\n$")
                self.assertIn("SIGNIN_SECRET is not set", server.told())
                self.assertNotIn("no_secret", server.told())
                self.assertEqual(server.guesses(6), [403] * 5 + [429])
                server.send_code(OWNER, source="127.0.0.2")
            secret = pathlib.Path(folder.path, "secret")
            self.assertEqual(secret.stat().st_mode & 0o777, 0o600)
            self.assertRegex(secret.read_text(), "^[0-9a-f]{64}$")
            with Server(folder, **bare) as server:
                self.assertEqual(server.guess(), 429)

    def test_a_port_in_use_is_told_and_both_signals_end_it_cleanly(self):
        with Server() as server:
            done = try_to_start(LISTEN=f"127.0.0.1:{server.port}")
            self.assertEqual(done.returncode, 1)
            self.assertIn(str(server.port), done.stderr)
            self.assertEqual(server.stop(signal.SIGINT), 0)
        with Server() as server:
            self.assertEqual(server.stop(signal.SIGTERM), 0)


class SigningIn(unittest.TestCase):
    def test_a_code_comes_by_mail_and_opens_once(self):
        with Folder() as folder, Server(folder) as server, Server(folder) as second:
            ticket, code = server.send_code()
            text = folder.mails(OWNER)[0]
            for line in ("From: sign-in@localhost", "Subject: Your sign-in code", "Date: ",
                         "Message-ID: <", "MIME-Version: 1.0"):
                self.assertIn("\n" + line, "\n" + text)
            self.assertNotIn(code, text.partition("\n\n")[0])
            got = second.form("/verify", user=OWNER, ticket=ticket, code=code)
            self.assertEqual((got.status, json.loads(got.body)), (200, {"signed_in": OWNER}))
            for each in (server, second):
                got = each.form("/verify", user=OWNER, ticket=ticket, code=code)
                self.assertEqual(got.status, 403)

    def test_a_ticket_is_of_one_user_and_whole(self):
        with Server(FAILURES=20, FAILURES_A_DAY=0) as server:
            ticket, code = server.send_code()
            end, digits, signature = ticket.split(".")
            later = f"{int(end) + 60}.{digits}.{signature}"
            other = f"{end}.{'0' * 32}.{signature}"
            wrong = f"{(int(code) + 1) % 1000000:06}"
            for user, sent, what in ((OTHER, ticket, code), (OWNER, later, code),
                                     (OWNER, other, code), (OWNER, "", code), (OWNER, ".", code),
                                     (OWNER, "..", code), (OWNER, ticket, wrong),
                                     (OWNER, ticket, ""), (OWNER, ticket, code + "0"),
                                     (OWNER, ticket + "0", code), (OWNER, "x" * 1000, code)):
                got = server.form("/verify", user=user, ticket=sent, code=what)
                self.assertEqual(got.status, 403, (user, sent, what))
            got = server.form("/verify", user=OWNER, ticket=ticket, code=code)
            self.assertEqual(got.status, 200)

    def test_a_code_that_is_over_opens_nothing(self):
        with Server(CODE_SECONDS=1) as server:
            ticket, code = server.send_code()
            time.sleep(2.1)
            got = server.form("/verify", user=OWNER, ticket=ticket, code=code)
            self.assertEqual(got.status, 403)

    def test_the_code_of_a_name_without_an_account_opens_nothing(self):
        """Nobody is mailed it, so it is made here, from the secret."""
        def code_of(ticket, user):
            key = hmac.digest(SECRET.encode(), b"weir-signin codes", "sha256")
            text = f"code\n{user}\n{ticket.rpartition('.')[0]}"
            digits = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
            return f"{int(digits[:16], 16) % 1000000:06}"

        with Server() as server:
            ticket, code = server.send_code()
            self.assertEqual(code_of(ticket, OWNER), code)
            ticket = json.loads(server.form("/code", user=NOBODY).body)["ticket"]
            got = server.form("/verify", user=NOBODY, ticket=ticket, code=code_of(ticket, NOBODY))
            self.assertEqual((got.status, got.body), (403, b'{"error":"wrong_code"}'))

    def test_one_code_that_is_shown_many_times_at_once_opens_once(self):
        with Folder() as folder, Server(folder, FAILURES=20) as one, \
                Server(folder, FAILURES=20) as two:
            ticket, code = one.send_code()
            found = []

            def show(server):
                found.append(server.form("/verify", user=OWNER, ticket=ticket, code=code).status)

            threads = [threading.Thread(target=show, args=((one, two)[n % 2],)) for n in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(collections.Counter(found), {200: 1, 403: 15})

    def test_what_nobody_can_be_counted_for_is_a_bad_request(self):
        with Server() as server:
            for path in ("/code", "/verify"):
                self.assertEqual(server.form(path, code="1").status, 400)
                self.assertEqual(server.form(path, user="").status, 400)
                twice = server.ask("POST", path, f"user={OWNER}&user={OTHER}")
                self.assertEqual(twice.status, 400)
                twice = server.ask("POST", path + f"?user={OTHER}", f"user={OWNER}")
                self.assertEqual(twice.status, 400)
                for name in ("owner", "@", "a@", "a b@c", "a@b\r\nBcc: c@d", "a@b@c", "<a@b>",
                             "\uff4fwner@example.org"):
                    self.assertEqual(server.form(path, user=name).status, 422, name)
                self.assertEqual(server.form(path, user="a" * 255 + "@b").status, 400)
            self.assertEqual(server.locked(), [])
            self.assertEqual(server.ask("GET", "/nothing").status, 404)
            self.assertEqual(server.ask("POST", "/verify", "user=" + "a" * 20000).status, 413)

    def test_a_browser_is_shown_forms_with_labels_and_a_refusal_with_its_time(self):
        with Server() as server:
            page = server.ask("GET", "/")
            self.assertIn("text/html", page.headers["Content-Type"])
            self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
            browser = {"accept": "text/html,*/*;q=0.8", "user": OWNER}
            code = server.form("/code", **browser)
            self.assertEqual(code.status, 200)
            for text in (page.body, code.body):
                for name in re.findall(rb'<input id="(\w+)"', text):
                    self.assertIn(b'<label for="%s">' % name, text)
            ticket = re.search(rb'name="ticket" value="([^"]+)"', code.body)[1].decode()
            for _ in range(5):
                got = server.form("/verify", ticket=ticket, code='"><script>', **browser)
                self.assertEqual(got.status, 403)
                self.assertIn(b'role="alert"', got.body)
                self.assertNotIn(b"<script", got.body)
                self.assertIn(ticket.encode(), got.body)
            got = server.form("/verify", ticket=ticket, code="1", **browser)
            self.assertEqual(got.status, 429)
            self.assertRegex(got.body.decode(), r'<time datetime="[-0-9]+T\d\d:\d\dZ">\d\d:\d\d UTC'
                                                r"</time>, in 15 minutes\.")
            self.assertLessEqual(int(got.headers["Retry-After"]), 900)


@unittest.skipUnless(CLOCK, "faketime is not installed")
class Minutes(unittest.TestCase):
    """The tables of the case list, on a server whose clock the test holds."""

    def test_the_sixth_try_is_refused_until_exactly_15_minutes_are_over_and_then_30(self):
        """L07, L12, L13."""
        with Folder(clock=True) as folder, Server(folder) as server:
            self.assertEqual(server.guesses(6), [403] * 5 + [429])
            folder.at(14 + 59 / 60)
            self.assertEqual(server.guess(), 429)
            folder.at(15)
            self.assertEqual(server.guesses(6), [403] * 5 + [429])
            self.assertEqual(server.wait_of(), 1800)
            folder.at(44 + 59 / 60)
            self.assertEqual(server.guess(), 429)
            folder.at(45)
            self.assertEqual(server.guess(), 403)

    def test_the_lockout_counts_from_the_fifth_failure(self):
        """L14."""
        with Folder(clock=True) as folder, Server(folder) as server:
            for minute in (0, 4, 8, 12, 14 + 59 / 60):
                folder.at(minute)
                self.assertEqual(server.guess(), 403)
            folder.at(29 + 58 / 60)
            self.assertEqual(server.guess(), 429)
            folder.at(29 + 59 / 60)
            self.assertEqual(server.guess(), 403)

    def test_a_failure_of_15_minutes_ago_does_not_count(self):
        """L15."""
        with Folder(clock=True) as folder, Server(folder) as server:
            for minute in (0, 4, 8, 12, 15, 15.1):
                folder.at(minute)
                self.assertEqual(server.guess(), 403, minute)
            self.assertEqual(server.guess(), 429)

    def test_whoever_uses_every_chance_is_locked_out_longer_each_time(self):
        """L09, L10, L11: the first 13 lockouts, without the wider tier."""
        starts = [0, 15, 45, 105, 225, 465, 945, 1905, 3345, 4785, 6225, 7665, 9105]
        with Folder(clock=True) as folder, Server(folder, FAILURES_A_DAY=0) as server:
            for nth, start in enumerate(starts):
                folder.at(start)
                self.assertEqual(server.guesses(6), [403] * 5 + [429], start)
                length = min(15 * 2**nth, 1440)
                self.assertEqual(server.wait_of(), 60 * length)
                if nth + 1 < len(starts):
                    self.assertEqual(start + length, starts[nth + 1])

    def test_who_paces_guesses_is_stopped_at_20_a_day(self):
        """L16."""
        with Folder(clock=True) as folder, Server(folder) as server:
            found = []
            for nth in range(24):
                folder.at(3.75 * nth)
                found.append(server.guess())
            self.assertEqual(found, [403] * 20 + [429] * 4)

    def test_knocking_while_locked_neither_counts_nor_extends(self):
        """O48, L04."""
        with Folder(clock=True) as folder:
            numbers = {"FAILURES": 3, "WINDOW_SECONDS": 3600, "FIRST_SECONDS": 3600}
            with Server(folder, **numbers) as server:
                for minute in (0, 1, 5):
                    folder.at(minute)
                    self.assertEqual(server.guess(), 403)
                for minute in (5, 20, 50, 64 + 59 / 60):
                    folder.at(minute)
                    self.assertEqual(server.guesses(5), [429] * 5)
                    self.assertEqual(server.wait_of(), round(60 * (65 - minute)))
                self.assertEqual(len(server.locked()), 1)
                folder.at(65)
                self.assertEqual(server.guesses(4), [403] * 3 + [429])

    def test_a_week_without_a_lockout_takes_a_step_back(self):
        """L19 does not happen: levels do not count for ever."""
        with Folder(clock=True) as folder, Server(folder, FAILURES_A_DAY=0) as server:
            server.guesses(5)
            folder.at(15)
            server.guesses(5)
            self.assertEqual(server.wait_of(), 1800)
            folder.at(45 + 7 * 1440)
            server.guesses(5)
            self.assertEqual(server.wait_of(), 1800)  # not 3600
            folder.at(75 + 30 * 1440)
            server.guesses(5)
            self.assertEqual(server.wait_of(), 900)

    def test_a_restart_and_a_kill_leave_lockouts_level_and_failures(self):
        with Folder(clock=True) as folder:
            with Server(folder) as server:
                self.assertEqual(server.guesses(3), [403] * 3)
                server.stop(signal.SIGKILL)
            with Server(folder) as server:
                self.assertEqual(server.guesses(3), [403] * 2 + [429])
                server.stop(signal.SIGKILL)
            folder.at(14)
            with Server(folder) as server:
                self.assertEqual(server.wait_of(), 60)
                self.assertEqual(server.stop(), 0)
            folder.at(15)
            with Server(folder) as server:
                self.assertEqual(server.guesses(6), [403] * 5 + [429])
                self.assertEqual(server.wait_of(), 1800)


class Counting(unittest.TestCase):
    def test_while_locked_no_code_is_mailed_and_a_new_code_clears_nothing(self):
        """L24."""
        with Server() as server:
            self.assertEqual(server.guesses(4), [403] * 4)
            server.send_code()
            self.assertEqual(server.guesses(2), [403, 429])
            got = server.form("/code", user=OWNER)
            self.assertEqual((got.status, got.body), (429, TOO_MANY))
            self.assertLessEqual(int(got.headers["Retry-After"]), 900)
            time.sleep(0.6)
            self.assertEqual(len(server.folder.mails()), 1)

    def test_a_right_code_of_a_locked_visitor_opens_nothing(self):
        with Server() as server:
            ticket, code = server.send_code()
            server.guesses(5)
            got = server.form("/verify", user=OWNER, ticket=ticket, code=code)
            self.assertEqual((got.status, got.body), (429, TOO_MANY))

    def test_a_success_takes_its_own_place_back_and_no_other(self):
        """L18."""
        with Server() as server:
            self.assertEqual(server.guesses(4), [403] * 4)
            server.sign_in()
            self.assertEqual(server.guesses(2), [403, 429])

    def test_spellings_of_one_name_share_their_failures(self):
        """O49."""
        with Server() as server:
            for name in (OWNER, " " + OWNER, "OWNER@example.org", "Owner@Example.Org ",
                         "\t" + OWNER):
                self.assertEqual(server.guess(user=name), 403)
            self.assertEqual(server.guess(user=OWNER), 429)
            self.assertEqual(server.guess(user="0wner@example.org"), 403)

    def test_pairs_are_apart(self):
        """O48, L27: users of one address, addresses of one user."""
        with Server() as server:
            self.assertEqual(server.guesses(6), [403] * 5 + [429])
            server.sign_in(OTHER)
            server.sign_in(OWNER, source="127.0.0.2")
            self.assertEqual(server.guess(), 429)

    def test_neither_names_nor_addresses_are_stored(self):
        """L25 does not happen."""
        with Server() as server:
            server.guesses(6, source="127.9.8.7")
            server.send_code()
            server.stop()
            for name in glob.glob(server.folder.path + "/counters.db*"):
                kept = pathlib.Path(name).read_bytes()
                for text in (b"owner", b"example.org", b"127.9.8.7", bytes([127, 9, 8, 7])):
                    self.assertNotIn(text, kept)

    def test_spellings_and_neighbours_of_an_address_are_one(self):
        """L26 does not happen."""
        with Server(TRUSTED_PROXY_HOPS=1) as server:
            body = form_body(user=OWNER, ticket="0.0.0", code="x")
            for spellings in (("2001:db8::1", "2001:DB8::1", "2001:0db8:0:0::0001",
                               "2001:db8::dead:beef", "[2001:db8::7]:443", "2001:db8::2"),
                              ("203.0.113.7", "::ffff:203.0.113.7", "::FFFF:203.0.113.7",
                               "203.0.113.7:80", "::ffff:cb00:7107", "203.0.113.7")):
                found = [server.ask("POST", "/verify", body, {"X-Forwarded-For": one}).status
                         for one in spellings]
                self.assertEqual(found, [403] * 5 + [429])

    def test_codes_that_are_sent_are_limited(self):
        with Server() as server:
            for _ in range(5):
                server.send_code()
            got = server.form("/code", user=OWNER)
            self.assertEqual((got.status, got.body), (429, TOO_MANY))
            server.send_code(source="127.0.0.2")

    def test_a_forwarded_header_is_believed_of_a_proxy_alone(self):
        header = {"X-Forwarded-For": "203.0.113.7"}
        body = form_body(user=OWNER, ticket="0.0.0", code="x")
        with Server() as server:
            for _ in range(5):
                server.ask("POST", "/verify", body, header)
            self.assertEqual(server.guess(), 429)
        with Server(TRUSTED_PROXY_HOPS=1) as server:
            for _ in range(6):
                last = server.ask("POST", "/verify", body, header).status
            self.assertEqual((last, server.guess()), (429, 403))


class KnownDevice(unittest.TestCase):
    def test_strangers_do_not_lock_a_person_out(self):
        with Server(FAILURES_PER_USER=40, CODES_PER_USER=8) as server:
            cookie = server.sign_in()
            found = collections.Counter(
                server.guess(source=f"127.0.1.{n % 20 + 1}") for n in range(120))
            self.assertEqual(found, {403: 40, 429: 80})
            for n in range(12):
                server.form("/code", source=f"127.0.2.{n + 1}", user=OWNER)
            self.assertEqual(server.guess(source="127.0.3.1"), 429)
            self.assertEqual(server.form("/code", source="127.0.3.1", user=OWNER).status, 429)
            again = server.sign_in(cookie=cookie)  # a mail and a try, in the same minute
            server.sign_in(cookie=again, source="127.0.4.1")

    def test_after_ten_thousand_failures_of_strangers_its_owner_signs_in(self):
        with Server(FAILURES_PER_USER=100000, THREADS=8) as server:
            cookie, found = server.sign_in(), collections.Counter()

            def strangers(part):
                mine = [server.guess(source=f"127.{part}.{n // 250}.{n % 250 + 1}")
                        for n in range(500) for _ in range(5)]
                found.update(mine)

            threads = [threading.Thread(target=strangers, args=(n + 1,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(found, {403: 10000})
            self.assertEqual(len(server.locked()), 2000)
            server.sign_in(cookie=cookie)

    def test_a_known_device_has_five_tries_of_its_own(self):
        with Server() as server:
            cookie = server.sign_in()
            self.assertEqual(server.guesses(6, cookie=cookie), [403] * 5 + [429])
            self.assertEqual(server.guesses(6), [403] * 5 + [429])
            self.assertEqual({one["limit"] for one in server.locked()}, {"pair", "device"})

    def test_a_cookie_is_of_one_user_and_of_this_server(self):
        with Server() as server:
            cookie = server.sign_in(OTHER)
            forged = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
            self.assertEqual(server.guesses(6), [403] * 5 + [429])
            self.assertEqual(server.guess(cookie=cookie), 429)
            self.assertEqual(server.guesses(5, user=OTHER), [403] * 5)
            self.assertEqual(server.guess(user=OTHER, cookie=forged), 429)
            self.assertEqual(server.guess(user=OTHER, cookie=cookie), 403)

    def test_the_cookie_is_for_its_browser_alone(self):
        with Server() as server:
            ticket, code = server.send_code()
            got = server.form("/verify", user=OWNER, ticket=ticket, code=code)
            self.assertRegex(got.headers["Set-Cookie"],
                             r"^signin_device=[0-9a-zA-Z.]+; Path=/; Secure; HttpOnly; "
                             r"SameSite=Lax; Max-Age=15552000$")


class NobodyIsTold(unittest.TestCase):
    def test_answers_are_equal_whether_there_is_an_account_or_not(self):
        with Server(FAILURES_PER_ADDRESS=1000) as server:
            for accept in (None, "text/html"):
                seen = {}
                source = "127.0.0.7" if accept else "127.0.0.8"
                for user in (OWNER, NOBODY):
                    answers = [server.form("/code", source, accept=accept, user=user)]
                    answers += [server.form("/verify", source, accept=accept, user=user,
                                            ticket=f"1.{'0' * 32}.{'0' * 64}", code="123456")
                                for _ in range(6)]
                    answers.append(server.form("/code", source, accept=accept, user=user))
                    seen[user] = [(status, headers, body.replace(user.encode(), b"USER"))
                                  for status, headers, body in map(fields_of, answers)]
                    seen[user] = [re.sub(r"'Retry-After', '(89\d|900)'", "", repr(one))
                                  for one in seen[user]]
                    seen[user] = [re.sub(r'datetime=.*?</time>', "", one) for one in seen[user]]
                self.assertEqual(seen[OWNER], seen[NOBODY])
                self.assertIn("429", seen[OWNER][6])
            time.sleep(0.6)
            self.assertEqual(server.folder.mails(NOBODY), [])
            self.assertEqual(len(server.folder.mails(OWNER)), 2)

    def test_the_time_of_an_answer_does_not_tell_either(self):
        """Medians of 300 in turn differ by a tenth and 0.2 ms at most."""
        wide = {"FAILURES_PER_USER": 100000, "CODES_PER_USER": 100000}
        with Server(**wide) as server:
            for path in ("/code", "/verify"):
                taken = {OWNER: [], NOBODY: []}
                for n in range(300):
                    source = f"127.1.{n // 250}.{n % 250 + 1}"
                    for user in (OWNER, NOBODY) if n % 2 else (NOBODY, OWNER):
                        start = time.perf_counter()
                        got = server.form(path, source, user=user, code="123456",
                                          ticket=f"1.{'0' * 32}.{'0' * 64}")
                        taken[user].append(time.perf_counter() - start)
                        self.assertIn(got.status, (200, 403))
                known, unknown = (statistics.median(taken[user]) for user in (OWNER, NOBODY))
                print(f"{path}: {known * 1e3:.3f} ms with an account, {unknown * 1e3:.3f} without",
                      file=sys.stderr)
                self.assertLess(abs(known - unknown), 0.1 * max(known, unknown) + 0.0002)


class Operator(unittest.TestCase):
    def test_nothing_is_told_without_the_token(self):
        with Server() as server:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
                for method, path in (("GET", "/admin/locked"), ("POST", "/admin/clear")):
                    body = "user=" + OWNER if method == "POST" else None
                    got = server.ask(method, path, body, headers)
                    self.assertEqual((got.status, got.body), (401, b'{"error":"unauthorized"}'))

    def test_who_is_locked_is_listed_and_a_digest_clears_it(self):
        with Server() as server:
            self.assertEqual(server.locked(), [])
            server.guesses(5)
            (one,) = server.locked()
            self.assertEqual((one["limit"], one["tier"], one["level"]), ("pair", 0, 0))
            until = datetime.datetime.strptime(one["until"], "%Y-%m-%dT%H:%M:%SZ")
            left = until - datetime.datetime.utcnow()
            self.assertTrue(880 < left.total_seconds() <= 901, left)
            self.assertNotIn("owner", json.dumps(one))
            self.assertEqual(server.manage("POST", "/clear", key=one["key"])[0], 200)
            self.assertEqual(server.locked(), [])
            self.assertEqual(server.guess(), 403)

    def test_a_pair_is_cleared_by_its_names_with_failures_and_level(self):
        """L20."""
        with Server() as server:
            server.guesses(6)
            status, _ = server.manage("POST", "/clear", user=" Owner@example.org",
                                      address="127.0.0.1")
            self.assertEqual(status, 200)
            self.assertEqual(server.guesses(6), [403] * 5 + [429])
            self.assertLessEqual(server.wait_of(), 900)  # the first lockout once more

    def test_wide_limits_are_cleared_too(self):
        with Server(FAILURES_PER_USER=3, FAILURES_PER_ADDRESS=4) as server:
            self.assertEqual(server.guesses(4), [403] * 3 + [429])
            self.assertEqual(server.manage("POST", "/clear", user=OWNER)[0], 200)
            self.assertEqual(server.guesses(2), [403, 429])
            self.assertEqual(server.manage("POST", "/clear", address="127.0.0.1")[0], 200)
            self.assertEqual(server.guess(user=OTHER), 403)

    def test_what_names_nothing_clears_nothing(self):
        with Server() as server:
            for fields, wanted in (({"x": 1}, 400), ({"key": "zz"}, 422),
                                   ({"key": "g" * 32}, 422), ({"address": "here"}, 422),
                                   ({"user": OWNER, "address": "here"}, 422)):
                self.assertEqual(server.manage("POST", "/clear", **fields)[0], wanted, fields)


class Mail(unittest.TestCase):
    def sink(self, mails, said):
        """A server of SMTP for one connection."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            raw, _ = listener.accept()
            lines = raw.makefile("rwb", buffering=0)
            lines.write(b"220 sink\r\n")
            while line := lines.readline().strip():
                said.append(line)
                verb = line.split()[0].upper()
                if verb == b"DATA":
                    lines.write(b"354 go on\r\n")
                    text = b""
                    while not text.endswith(b"\r\n.\r\n"):
                        text += lines.readline()
                    mails.append(text.decode())
                lines.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 sink\r\n")
                if verb == b"QUIT":
                    break
            raw.close()
            listener.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        return listener.getsockname()[1], thread

    def test_a_code_goes_to_a_server_of_smtp(self):
        mails, said = [], []
        port, thread = self.sink(mails, said)
        with Server(SMTP_URL=f"smtp://127.0.0.1:{port}", SMTP_TLS="off",
                    MAIL_FROM="door@example.org") as server:
            got = server.form("/code", user=OWNER)
            thread.join(timeout=10)
            self.assertEqual(len(mails), 1, server.told())
            self.assertIn(b"MAIL FROM:<door@example.org>", said)
            self.assertIn(b"RCPT TO:<owner@example.org>", said)
            code = re.search(r"Your code is (\d{6})\r\n", mails[0])[1]
            ticket = json.loads(got.body)["ticket"]
            got = server.form("/verify", user=OWNER, ticket=ticket, code=code)
            self.assertEqual(got.status, 200)
            self.assertFalse(os.path.exists(server.folder.path + "/outbox"))

    def test_no_code_goes_out_without_tls_unless_that_is_said(self):
        mails, said = [], []
        port, thread = self.sink(mails, said)
        with Server(SMTP_URL=f"smtp://127.0.0.1:{port}") as server:
            self.assertEqual(server.form("/code", user=OWNER).status, 200)
            thread.join(timeout=10)
            self.assertEqual(server.stop(), 0)
            self.assertIn("a mail was not sent", server.told())
            self.assertNotIn("owner", server.told())
        self.assertEqual(mails, [])
        self.assertNotIn(b"MAIL", b" ".join(said))


@unittest.skipUnless(chromium.PROGRAM, "chromium is not installed")
class InABrowser(unittest.TestCase):
    def submit(self, page, text):
        """With the keys alone: the first thing to be reached is the field."""
        page.press("Tab")
        page.type(text)
        page.then(lambda: page.press("Enter"))

    def test_one_signs_in_mistypes_five_times_and_is_told_until_when(self):
        with Server() as server, chromium.Chromium() as page:
            site = f"http://127.0.0.1:{server.port}/"
            page.open(site)
            self.assertIn(("textbox", "E-mail address"), page.seen())
            self.assertIn(("button", "Send me a code"), page.seen())
            self.submit(page, OWNER)
            self.assertIn(("heading", "Enter your code"), page.seen())
            self.assertIn(("textbox", "Code, six digits"), page.seen())
            self.submit(page, server.newest(OWNER, 0))
            self.assertIn(("heading", "Signed in"), page.seen())
            self.assertIn(OWNER, page.run("document.body.innerText"))

            page.open(site)
            self.submit(page, OWNER)
            for _ in range(5):
                self.submit(page, "000000")
                self.assertIn("alert", [role for role, _ in page.seen()])
                self.assertIn("This code is not right.", page.run("document.body.innerText"))
            self.submit(page, "000000")
            self.assertIn(("heading", "Too many tries"), page.seen())
            self.assertIn("alert", [role for role, _ in page.seen()])
            text = page.run("document.body.innerText")
            self.assertRegex(text, r"Try again at \d\d:\d\d UTC, in 15 minutes\.")
            # The browser has kept its cookie: what it has locked out is its own device.
            self.assertEqual([one["limit"] for one in server.locked()], ["device"])


class Race:
    """On each store: `folder()` makes a place."""

    def test_of_200_simultaneous_guesses_five_are_evaluated_and_one_lockout_starts(self):
        """L21 and L22 do not happen."""
        with self.folder() as folder, Server(folder, THREADS=50) as a, \
                Server(folder, THREADS=50) as b, Server(folder, THREADS=50) as c, \
                Server(folder, THREADS=50) as d:
            for user in (OWNER, OTHER, NOBODY):
                found = all_at_once([a, b, c, d], 200, user=user)
                self.assertEqual(found, {403: 5, 429: 195})
            locked = a.locked()
            self.assertEqual([(one["limit"], one["tier"], one["level"]) for one in locked],
                             [("pair", 0, 0)] * 3)
            time.sleep(1.1)
            self.assertEqual([server.guess() for server in (a, b, c, d)], [429] * 4)
            self.assertLessEqual(d.wait_of(), 900)

    def test_a_lockout_outlives_a_kill_and_holds_at_all_processes(self):
        with self.folder() as folder:
            with Server(folder) as server:
                self.assertEqual(server.guesses(5), [403] * 5)
                server.stop(signal.SIGKILL)
            with Server(folder) as one, Server(folder) as two:
                self.assertEqual((one.guess(), two.guess()), (429, 429))
                status, _ = one.manage("POST", "/clear", user=OWNER, address="127.0.0.1")
                self.assertEqual(status, 200)
                time.sleep(1.1)
                self.assertEqual(two.guess(), 403)

    def test_a_kill_in_the_middle_of_guesses_gives_no_further_ones(self):
        with self.folder() as folder:
            for user in (OWNER, OTHER, NOBODY):
                with Server(folder) as server:
                    found = []

                    def knock():
                        try:
                            found.append(server.guess(user=user))
                        except OSError:
                            pass
                        except http.client.HTTPException:
                            pass

                    threads = [threading.Thread(target=knock) for _ in range(20)]
                    for thread in threads:
                        thread.start()
                    time.sleep(0.004)
                    server.stop(signal.SIGKILL)
                    for thread in threads:
                        thread.join()
                with Server(folder) as server:
                    found += server.guesses(6, user=user)
                self.assertLessEqual(found.count(403), 5)
                self.assertEqual(found[-1], 429)


class OnAFile(Race, unittest.TestCase):
    def folder(self):
        return Folder()

    def test_while_the_file_does_not_answer_nobody_signs_in(self):
        with Server() as server:
            ticket, code = server.send_code()
            holder = sqlite3.connect(server.folder.path + "/counters.db", isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            for path in ("/code", "/verify"):
                got = server.form(path, user=OWNER, ticket=ticket, code=code)
                self.assertEqual((got.status, got.body), (503, b'{"error":"unavailable"}'))
            holder.execute("ROLLBACK")
            holder.close()
            deadline = time.monotonic() + 10
            while server.form("/code", user=OTHER).status != 200:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)


def has_postgres():
    return shutil.which("pg_config") or glob.glob("/usr/lib/postgresql/*/bin/initdb")


@unittest.skipUnless(has_postgres(), "no PostgreSQL server is installed")
class OnAServer(Race, unittest.TestCase):
    made = 0

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="weir-pg-")
        cls.tool("start", "fsync=off")

    @classmethod
    def tearDownClass(cls):
        cls.tool("stop")
        shutil.rmtree(cls.place, ignore_errors=True)

    @classmethod
    def tool(cls, deed, *settings):
        subprocess.run([TOOLS / "postgres", deed, cls.place, *settings], check=True,
                       stdin=subprocess.DEVNULL, timeout=120)

    def folder(self):
        OnAServer.made += 1
        name = f"signin_{OnAServer.made}"
        subprocess.run(["psql", "-qX", "-h", self.place, "-U", "postgres", "-c",
                        f"CREATE DATABASE {name}"], check=True, timeout=60)
        place = self.place.replace("/", "%2F")
        return Folder(database=f"postgresql://postgres@{place}/{name}")

    def test_while_the_server_is_away_nobody_signs_in(self):
        with self.folder() as folder, Server(folder) as server:
            ticket, code = server.send_code()
            self.tool("stop")
            try:
                for path in ("/code", "/verify"):
                    got = server.form(path, user=OWNER, ticket=ticket, code=code)
                    self.assertEqual((got.status, got.body), (503, b'{"error":"unavailable"}'))
                self.assertEqual(server.manage("GET", "/locked")[0], 503)
            finally:
                self.tool("start", "fsync=off")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()

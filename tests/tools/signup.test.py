# SPDX-License-Identifier: BSL-1.0
"""signup.test.py PROGRAM [--postgres]: the sign-up server as a process, over real sockets, on
SQLite or on a private PostgreSQL, with a real SMTP server.

Debian: python3-aiosmtpd, libfaketime, postgresql.

Names in brackets are rows of the case tables: D of the deferral seed, O of the bug reports.
"""

import base64
import collections
import concurrent.futures
import datetime
import email
import glob
import html
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian has it, for any Python
from aiosmtpd.controller import Controller  # noqa: E402

PROGRAM = ""
TOKEN = "operator-token-0123456789"
SECRET = "a-secret-of-the-test-0123456789"
TOOLS = os.path.dirname(os.path.abspath(__file__))
HOUR, DAY = 3600, 86400
MANY = 1_000_000
WINDOW_END = 40  # seconds before the end of an hour in which no test begins

PARTS = '--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nme\r\n--b--\r\n'

Answer = collections.namedtuple("Answer", "status headers body")


def fake_clock(at):
    """For a process: its system clock starts at this instant, and runs."""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    assert found, "libfaketime is not installed"
    return {"LD_PRELOAD": found[0], "FAKETIME": "@" + at, "TZ": "UTC",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def sanitized():
    """Such a program wants its own library loaded before any other."""
    with open(PROGRAM, "rb") as file:
        code = file.read()
    return b"__asan_init" in code or b"__tsan_init" in code


def utc(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp()


class Files:
    """Each folder has a database of its own: here a file."""

    def of(self, folder):
        return folder + "/signup.db"

    def ask(self, folder, sql):
        with sqlite3.connect(self.of(folder), timeout=20) as database:
            return [list(row) for row in database.execute(sql)]


class Cluster:
    """Each folder has a database of its own on one private server."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-su-", dir="/tmp")
        os.rmdir(self.folder)
        subprocess.run([TOOLS + "/postgres", "start", self.folder], check=True)
        self.known = {}

    def psql(self, database, sql):
        said = subprocess.run(["psql", "-h", self.folder, "-U", "postgres", "-d", database, "-qAt",
                               "-F", "\t", "-c", sql], check=True, capture_output=True, text=True)
        return [line.split("\t") for line in said.stdout.splitlines()]

    def of(self, folder):
        if folder not in self.known:
            self.known[folder] = f"s{len(self.known)}"
            self.psql("postgres", f"CREATE DATABASE {self.known[folder]}")
        return f"postgresql://postgres@{self.folder.replace('/', '%2F')}/{self.known[folder]}"

    def ask(self, folder, sql):
        self.of(folder)
        number = lambda cell: int(cell) if re.fullmatch(r"-?\d+", cell) else cell or None
        return [[number(cell) for cell in row] for row in self.psql(self.known[folder], sql)]

    def stop(self):
        subprocess.run([TOOLS + "/postgres", "stop", self.folder], check=True)


class Server:
    """The program in a folder and on a port of its own, until the with block ends."""

    def __init__(self, databases, folder=None, clock=None, **settings):
        self.made = None if folder else tempfile.TemporaryDirectory(prefix="weir-signup-")
        self.folder = folder or self.made.name
        self.databases = databases
        kept = {name: v for name, v in os.environ.items() if not name.startswith("SIGNUP_")}
        ours = {"LISTEN": "127.0.0.1:0", "ADMIN_TOKEN": TOKEN, "SECRET": SECRET,
                "FOLDER": self.folder, "DATABASE": databases.of(self.folder),
                "FORM_MIN_AGE_SECONDS": 0, "PER_CLIENT": MANY, "PER_ADDRESS": MANY, "WORKERS": 0}
        given = {**ours, **settings}
        self.environment = {**kept, **{"SIGNUP_" + k: str(v) for k, v in given.items()},
                            **(fake_clock(clock) if clock else {})}

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([PROGRAM], env=self.environment, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        said = re.fullmatch(r"listening on http://(.+):(\d+)\n", line)
        assert said, f"the first line is {line!r}; {self.told()}"
        self.port = int(said[2])
        return self

    def told(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=30)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        if self.made:
            self.made.cleanup()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            got = connection.getresponse()
            return Answer(got.status, got.headers, got.read().decode())
        finally:
            connection.close()

    def post(self, path, fields, headers=None):
        return self.ask("POST", path, urllib.parse.urlencode(fields),
                        {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})

    def token(self, path="/"):
        return values_in(self.ask("GET", path).body)["form_token"]

    def apply(self, mailbox, token=None, headers=None, **more):
        fields = {"email": mailbox, "name": "A guest", "about": "I like it here.",
                  "form_token": self.token() if token is None else token, **more}
        return self.post("/apply", fields, headers)

    def rows(self, sql):
        return self.databases.ask(self.folder, sql)

    def count(self, table, where="1 = 1"):
        return int(self.rows(f"SELECT count(*) FROM {table} WHERE {where}")[0][0])

    def backlog(self):
        got = self.ask("GET", "/operator/backlog", headers={"Authorization": "Bearer " + TOKEN})
        return json.loads(got.body)


def values_in(page):
    """Of the fields of a form, as a browser reads them."""
    found = {}
    for tag in re.findall(r"<input[^>]*>", page):
        name = re.search(r' name="([^"]*)"', tag)[1]
        found[name] = html.unescape(re.search(r' value="([^"]*)"', tag)[1])
    for name, text in re.findall(r'<textarea[^>]* name="([^"]*)"[^>]*>\n(.*?)</textarea>', page,
                                 re.S):
        found[name] = html.unescape(text)
    return found


def trap_in(page):
    return re.search(r'aria-hidden="true" inert.*? name="([^"]*)"', page)[1]


def naive(at, count, per_hour=30, per_day=100):
    """The search of the seed, window by window: when each of `count` that come at `at` goes."""
    hours, days, found = collections.Counter(), collections.Counter(), []
    for _ in range(count):
        goes = at
        while True:
            if days[goes // DAY] >= per_day:
                goes = (goes // DAY + 1) * DAY
            elif hours[goes // HOUR] >= per_hour:
                goes = (goes // HOUR + 1) * HOUR
            else:
                break
        hours[goes // HOUR] += 1
        days[goes // DAY] += 1
        found.append(goes)
    return hours


def until(claim, seconds=30):
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "it does not become true"
        time.sleep(0.05)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Mails:
    """A real SMTP server. `at(point, address)` is called when a client gets there, before it is
    answered: connect, mail, rcpt, data."""

    def __init__(self, at=lambda point, address: None, port=None):
        self.at, self.taken, self.lock = at, [], threading.Lock()
        self.port = port or free_port()
        self.refuse, self.cut = {}, set()  # by address; to cut: once, after the text

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        self.at("connect", None)
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):
        envelope.mail_from = address
        self.at("mail", address)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        self.at("rcpt", address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        with self.lock:
            self.taken.append((envelope.rcpt_tos[0],
                               email.message_from_bytes(envelope.content)))
        self.at("data", envelope.rcpt_tos[0])
        if envelope.rcpt_tos[0] in self.cut:
            self.cut.remove(envelope.rcpt_tos[0])
            server.transport.abort()
        return "250 OK"

    def __enter__(self):
        self.controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self.controller.start()
        self.url = f"smtp://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_):
        self.controller.stop()

    def by_address(self):
        with self.lock:
            found = collections.defaultdict(list)
            for address, mail in self.taken:
                found[address].append(mail)
            return found


def outbox(server):
    found = {}
    for path in glob.glob(server.folder + "/outbox/*.eml"):
        with open(path, "rb") as file:
            mail = email.message_from_bytes(file.read())
        found[mail["Message-ID"]] = mail
    return list(found.values())


def link_in(mail, page):
    return re.search(rf"http://[^/]+(/{page}\?code=\w+)", mail.get_payload())[1]


class Settings(unittest.TestCase):
    def test_the_table_of_the_readme_has_each_setting_and_no_other(self):
        example = TOOLS + "/../../examples/signup"
        with open(example + "/README.md", encoding="utf-8") as file:
            told = set(re.findall(r"^\| `(SIGNUP_\w+)`", file.read(), re.M))
        with open(example + "/settings.cpp", encoding="utf-8") as file:
            read = set(re.findall(r'"(SIGNUP_\w*[A-Z])"', file.read()))
        self.assertEqual(read - told, set())
        with tempfile.TemporaryDirectory() as folder:
            started = subprocess.Popen([PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env={**os.environ, **dict.fromkeys(told, ""),
                                                       "SIGNUP_FOLDER": folder,
                                                       "SIGNUP_LISTEN": "127.0.0.1:0"})
            started.stdout.readline()
            started.terminate()
            self.assertNotIn("is no setting", started.communicate(timeout=20)[1])

    def test_all_wrong_settings_are_named_in_one_line_and_the_exit_code_is_2(self):
        wrong = {"SIGNUP_PER_HOUR": "0", "SIGNUP_LISTEN": "here", "SIGNUP_SECRET": "hush",
                 "SIGNUP_SMTP_URL": "http://mail", "SIGNUP_MAIL_FROM": "nobody"}
        with tempfile.TemporaryDirectory() as folder:
            got = subprocess.run([PROGRAM], env={**os.environ, **wrong, "SIGNUP_FOLDER": folder},
                                 capture_output=True, text=True, timeout=20)
        self.assertEqual((got.returncode, got.stdout), (2, ""))
        self.assertEqual(len(got.stderr.splitlines()), 1)
        for name in wrong:
            self.assertIn(name, got.stderr)
        self.assertNotIn("hush", got.stderr)

    def test_without_settings_it_starts_in_a_folder_warns_of_the_secret_and_tells_a_token(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = {k: v for k, v in os.environ.items() if not k.startswith("SIGNUP_")}
            started = subprocess.Popen([PROGRAM], cwd=folder, stdout=subprocess.PIPE,
                                       env={**kept, "SIGNUP_LISTEN": "127.0.0.1:0"},
                                       stderr=subprocess.PIPE, text=True)
            first, second = started.stdout.readline(), started.stdout.readline()
            started.terminate()
            told = started.communicate(timeout=20)[1]
            mode = os.stat(folder + "/weir-signup/signup.db").st_mode & 0o777
        self.assertRegex(first, r"^listening on http://127\.0\.0\.1:\d+\n$")
        self.assertRegex(second, r"^admin token: \w{32}\n$")
        self.assertIn("SIGNUP_SECRET is not set", told)
        self.assertEqual((started.returncode, mode), (0, 0o600))


class Cases:
    """Runs on each database."""

    def setUp(self):
        left = HOUR - time.time() % HOUR
        if left < WINDOW_END:  # a test that counts hours ends in the one in which it began
            time.sleep(left + 0.1)

    def server(self, **settings):
        return Server(self.databases, **settings)

    def test_the_page_works_without_scripts_and_lets_no_stranger_in(self):
        with self.server() as server:
            got = server.ask("GET", "/")
            css = server.ask("GET", "/style.css")
            self.assertEqual(got.status, 200)
            self.assertNotIn("<script", got.body)
            self.assertIn("default-src 'none'", got.headers["Content-Security-Policy"])
            self.assertEqual(got.headers["Cache-Control"], "no-store")
            self.assertRegex(css.body, r"\.elsewhere\{position:absolute;left:-10000px")
            self.assertEqual(server.ask("GET", "/nowhere").status, 404)
            self.assertEqual(json.loads(server.ask("GET", "/health").body), {"status": "ok"})

    def test_D02_over_the_caps_the_answer_is_the_same_and_only_the_mail_waits(self):
        with self.server(PER_HOUR=1) as server:
            first, second = server.apply("a@x.test"), server.apply("b@x.test")
            for got in first, second:
                self.assertEqual((got.status, got.headers["Location"]), (303, "/received"))
            self.assertEqual(first.body, second.body)
            deferred = server.rows("SELECT deferred_until FROM signup_events ORDER BY at")
            next_hour = int(time.time() // HOUR + 1) * HOUR * 1_000_000
            self.assertEqual([row[0] for row in deferred], [None, next_hour])  # D06, D10

    def test_D28_a_bad_token_has_the_form_handed_back_with_400_and_no_row(self):
        with self.server(FORM_MIN_AGE_SECONDS=1, FORM_MAX_AGE_SECONDS=3) as server:
            young = server.token()
            for token in "", "forged", "A" * 76, young:
                got = server.apply("a@x.test", token)
                self.assertEqual(got.status, 400)
                values = values_in(got.body)
                self.assertEqual(values["email"], "a@x.test")
                self.assertNotEqual(values["form_token"], token)
            reissue = server.token("/reissue")
            time.sleep(1.2)
            self.assertEqual(server.apply("a@x.test", reissue).status, 400)  # D27
            fresh = values_in(got.body)["form_token"]
            time.sleep(2.2)
            old = server.apply("a@x.test", fresh)
            self.assertEqual((old.status, server.count("signup_applications")), (400, 0))
            time.sleep(1.2)
            again = values_in(old.body)
            self.assertEqual(server.post("/apply", again).status, 303)  # D31
            self.assertEqual(server.count("signup_applications"), 1)

    def test_D30_the_honeypot_wins_over_a_bad_token_and_nothing_is_kept_or_placed(self):
        with self.server(PER_HOUR=1) as server:
            page = server.ask("GET", "/").body
            trap = trap_in(page)
            for token in "forged", values_in(page)["form_token"]:
                got = server.apply("bot@x.test", token, **{trap: "http://spam.test"})
                self.assertEqual((got.status, got.headers["Location"]), (303, "/received"))
            for path in "/reissue", "/revise":
                got = server.post(path, {trap: "x"})
                self.assertEqual((got.status, got.headers["Location"]), (303, "/received"))
            self.assertEqual(server.count("signup_applications"), 0)
            self.assertEqual(server.apply("a@x.test").status, 303)
            self.assertEqual(server.count("signup_events", "deferred_until IS NOT NULL"), 0)

    def test_O54_a_trap_that_was_filled_slowly_is_kept_under_a_harder_limit_where_that_is_set(self):
        with self.server(TRAP_LENIENT_SECONDS=1, PER_CLIENT=10) as server:
            page = server.ask("GET", "/").body
            trap, token = trap_in(page), values_in(page)["form_token"]
            server.apply("fast@x.test", token, **{trap: "x"})
            self.assertEqual(server.count("signup_applications"), 0)
            tokens = [server.token() for _ in range(3)]
            time.sleep(1.2)
            got = [server.apply(f"slow{n}@x.test", token, **{trap: "x"}).status
                   for n, token in enumerate(tokens)]
            self.assertEqual(got, [303, 303, 429])
            self.assertEqual(server.count("signup_applications"), 2)

    def test_D31_a_form_that_is_handed_back_carries_every_value_exactly(self):
        sent = {"email": "not an <address>", "name": "O'Neil \"the\" & <b>Ünïcode</b> 漢字",
                "about": "\nfirst\n  second & <script>alert(1)</script>\n" + "é" * 3000}
        with self.server() as server:
            token = server.token()
            got = server.post("/apply", {**sent, "form_token": token})
            values = values_in(got.body)
            self.assertEqual(got.status, 400)
            self.assertEqual({name: values[name] for name in sent}, sent)
            self.assertNotEqual(values["form_token"], token)
            self.assertIn('aria-invalid="true" aria-describedby="email-wrong"', got.body)
            self.assertNotIn("<script>", got.body)
            # The one that was refused has not used up its token (D24).
            self.assertEqual(server.apply("a@x.test", token).status, 303)

    def test_bodies_that_are_no_form_of_ours_are_refused_and_a_long_one_is_taken(self):
        with self.server() as server:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            self.assertEqual(server.ask("POST", "/apply", "{}", {"Content-Type":
                                        "application/json"}).status, 415)
            self.assertEqual(server.ask("POST", "/apply", PARTS, {"Content-Type":
                                        "multipart/form-data; boundary=b"}).status, 415)
            self.assertEqual(server.ask("POST", "/apply", "a" * 70_000, form).status, 413)
            self.assertEqual(server.ask("POST", "/apply", "&".join("a" * 200), form).status, 400)
            got = server.ask("POST", "/apply", "name=%ff%00x", form)
            self.assertEqual((got.status, values_in(got.body)["name"]), (400, "\ufffd\ufffdx"))
            self.assertEqual(server.apply("a@x.test", about="漢" * 4000).status, 303)
            self.assertEqual(server.apply("b@x.test", about="漢" * 4001).status, 400)
            self.assertEqual(server.rows("SELECT length(about) FROM signup_applications"), [[4000]])

    def test_O50_spellings_of_one_address_are_one_and_D03_a_429_takes_no_place(self):
        with self.server(PER_ADDRESS=3, DOTLESS_DOMAINS="dotless.test") as server:
            spellings = ["A@x.test", "a@x.test ", "a@X.TEST", "a+1@x.test"]
            got = [server.apply(each) for each in spellings]
            self.assertEqual([each.status for each in got], [303, 303, 303, 429])
            self.assertRegex(got[3].headers["Retry-After"], r"^\d+$")
            self.assertEqual(values_in(got[3].body)["email"], "a+1@x.test")
            self.assertEqual(values_in(got[3].body)["about"], "I like it here.")
            dotted = [server.apply(each).status for each in
                      ("a.b@dotless.test", "ab@dotless.test", "a.b@x.test", "ab@x.test")]
            self.assertEqual(dotted, [303] * 4)
            self.assertEqual(server.count("signup_applications"), 4)
            self.assertEqual(server.count("signup_mails", "counted = 1"), 4)

    def test_D03_a_client_over_its_limit_gets_429_and_takes_no_place(self):
        with self.server(PER_CLIENT=2, PER_HOUR=2, TRUSTED_PROXY_HOPS=1) as server:
            behind = lambda who: {"X-Forwarded-For": who}
            got = [server.apply(f"a{n}@x.test", headers=behind("192.0.2.1")) for n in range(4)]
            self.assertEqual([each.status for each in got], [303, 303, 429, 429])
            self.assertEqual(server.apply("b@x.test", headers=behind("192.0.2.2")).status, 303)
            self.assertEqual(server.count("signup_applications"), 3)
            self.assertEqual(server.count("signup_events", "deferred_until IS NOT NULL"), 1)

    def test_O55_of_a_token_that_is_used_eight_times_at_once_one_is_taken(self):
        with self.server() as server, concurrent.futures.ThreadPoolExecutor(8) as many:
            for _ in range(5):
                before, token = server.count("signup_applications"), server.token()
                got = list(many.map(lambda n: server.apply(f"{time.time_ns()}.{n}@x.test", token),
                                    range(8)))
                self.assertEqual(sorted(each.status for each in got), [303] + [400] * 7)
                self.assertEqual(server.count("signup_applications"), before + 1)
                self.assertEqual(server.count("signup_mails"), before + 1)

    def test_D08_repeats_and_reissues_count_nowhere_and_go_at_once_at_a_full_cap(self):
        with self.server(PER_HOUR=1, WORKERS=1) as server:
            server.apply("a@x.test")
            until(lambda: len(outbox(server)) == 1)
            server.apply("waits@x.test")
            server.apply("A@x.test", name="Somebody else")
            until(lambda: len(outbox(server)) == 2)
            token = server.token("/reissue")
            got = server.post("/reissue", {"email": "a@x.test", "form_token": token})
            self.assertEqual((got.status, got.headers["Location"]), (303, "/received"))
            until(lambda: len(outbox(server)) == 3)
            # Nobody gets ahead by asking twice, and nobody learns who has applied.
            for mailbox in "waits@x.test", "unknown@x.test":
                token = server.token("/reissue")
                again = server.post("/reissue", {"email": mailbox, "form_token": token})
                self.assertEqual((again.status, again.body), (303, got.body))
            time.sleep(1.5)
            self.assertEqual({mail["To"] for mail in outbox(server)}, {"a@x.test"})
            self.assertEqual(len(outbox(server)), 3)
            self.assertEqual(server.count("signup_mails", "counted = 1"), 2)
            self.assertEqual(server.rows("SELECT name FROM signup_applications"
                                         " WHERE email = 'a@x.test'"), [["A guest"]])

    def test_a_link_confirms_by_a_click_and_not_by_a_look_and_leads_to_a_revision(self):
        with self.server(WORKERS=1) as server:
            server.apply("a@x.test")
            until(lambda: len(outbox(server)) == 1)
            mail = outbox(server)[0]
            self.assertEqual((mail["To"], mail["Auto-Submitted"]), ("a@x.test", "auto-generated"))
            self.assertNotIn("A guest", mail.get_payload())
            confirm = link_in(mail, "confirm")
            self.assertEqual(server.ask("GET", confirm).status, 200)
            self.assertEqual(server.count("signup_applications", "confirmed_at IS NOT NULL"), 0)
            code = confirm.split("=")[1]
            wrong = ("0" if code[-1] != "0" else "1").join([code[:-1], ""])
            self.assertEqual(server.post("/confirm", {"code": wrong}).status, 404)
            for _ in range(2):
                self.assertEqual(server.post("/confirm", {"code": code}).status, 200)
            self.assertEqual(server.count("signup_applications", "confirmed_at IS NOT NULL"), 1)
            self.assertEqual(server.count("signup_events", "kind = 'confirmed'"), 1)

            values = values_in(server.ask("GET", link_in(mail, "revise")).body)
            self.assertEqual((values["name"], values["about"]), ("A guest", "I like it here."))
            empty = server.post("/revise", {**values, "name": ""})
            self.assertEqual((empty.status, values_in(empty.body)["code"]), (400, code))
            got = server.post("/revise", {**values, "name": "A friend"})
            self.assertEqual((got.status, got.headers["Location"]), (303, "/received"))
            self.assertEqual(server.rows("SELECT name FROM signup_applications"), [["A friend"]])
            until(lambda: len(outbox(server)) == 2)
            self.assertEqual(server.count("signup_mails", "counted = 1"), 1)

    def place_250(self, server):
        """At once, from 50 clients; what each was answered."""
        with concurrent.futures.ThreadPoolExecutor(50) as many:
            return list(many.map(lambda n: server.apply(f"guest{n}@x.test").status, range(250)))

    def placed(self, server):
        found = collections.Counter()
        for [due] in server.rows("SELECT due_at FROM signup_mails WHERE counted = 1"):
            found[int(due) // 1_000_000 // HOUR] += 1
        return found

    def test_D01_250_at_once_are_all_taken_and_placed_exactly_and_so_after_a_kill(self):
        with self.server() as server:
            at = int(time.time())
            self.assertEqual(self.place_250(server), [303] * 250)
            self.assertEqual(self.placed(server), naive(at, 250))
            server.stop(signal.SIGKILL)
            with self.server(folder=server.folder) as after:
                for n in range(20):
                    self.assertEqual(after.apply(f"late{n}@x.test").status, 303)
                self.assertEqual(self.placed(after), naive(at, 270))

    def test_a_kill_in_the_middle_loses_nobody_who_was_thanked_and_passes_no_cap(self):
        with self.server() as server:
            thanked, lock = [], threading.Lock()

            def come(n):
                try:
                    if server.apply(f"guest{n}@x.test").status == 303:
                        with lock:
                            thanked.append(f"guest{n}@x.test")
                except OSError:
                    pass
                except http.client.HTTPException:
                    pass

            with concurrent.futures.ThreadPoolExecutor(30) as many:
                each = [many.submit(come, n) for n in range(150)]
                until(lambda: len(thanked) >= 40)
                server.stop(signal.SIGKILL)
                concurrent.futures.wait(each)
            with self.server(folder=server.folder) as after:
                for n in range(150):
                    self.assertEqual(after.apply(f"guest{n}@x.test").status, 303)
                kept = {row[0] for row in after.rows("SELECT email FROM signup_applications")}
                self.assertTrue(set(thanked) <= kept)
                self.assertEqual(len(kept), 150)
                self.assertEqual(after.count("signup_mails", "counted = 1"), 150)
                self.assertLessEqual(max(self.placed(after).values()), 30)

    def queue(self, server, count):
        """So many that are due, without asking for each."""
        values = [f"('{n:032x}', 'm{n}@x.test', 'm{n}@x.test', 'n', 'a', 0)" for n in range(count)]
        mails = [f"('{n:032x}', '{n:032x}', 'verify', 1, 1)" for n in range(count)]
        sql = ("INSERT INTO signup_applications (id, canonical, email, name, about, received_at)"
               " VALUES " + ", ".join(values) + ";",
               "INSERT INTO signup_mails (id, application, kind, counted, due_at) VALUES " +
               ", ".join(mails))
        for each in sql:
            server.rows(each)

    def test_O56_a_thousand_mails_of_four_processes_go_once_each(self):
        with Mails() as mails, self.server(PER_HOUR=MANY, PER_DAY=MANY) as server:
            self.queue(server, 1000)
            many = {"folder": server.folder, "PER_HOUR": MANY, "PER_DAY": MANY, "WORKERS": 2,
                    "SMTP_URL": mails.url}
            with self.server(**many), self.server(**many), self.server(**many), \
                    self.server(**many):
                until(lambda: len(mails.taken) >= 1000 and
                      server.count("signup_mails", "sent_at IS NULL") == 0, 120)
            found = mails.by_address()
            self.assertEqual({len(each) for each in found.values()}, {1})
            self.assertEqual(len(found), 1000)
            self.assertEqual(server.count("signup_mails", "perhaps_twice = 1"), 0)

    def kill_at(self, point, late=None):
        """Kills the process that sends the first of ten mails when that is at `point`, or a
        moment later. What came of it all, by address, and which of them are flagged."""
        victims, known = [], threading.Event()

        def at(where, _):
            if where != point:
                return
            known.wait()
            for process in victims[:]:
                victims.clear()
                if late is None:
                    process.kill()
                    process.wait()
                else:
                    threading.Timer(late, process.kill).start()

        settings = {"PER_HOUR": MANY, "PER_DAY": MANY, "LEASE_SECONDS": 2}
        with Mails(at) as mails, self.server(**settings) as server:
            self.queue(server, 10)
            sender = {**settings, "folder": server.folder, "WORKERS": 1, "SMTP_URL": mails.url}
            with self.server(**sender) as victim:
                victims.append(victim.process)
                known.set()
                victim.process.wait(timeout=30)
                with self.server(**sender):
                    until(lambda: server.count("signup_mails", "sent_at IS NULL") == 0)
            flagged = {row[0] for row in server.rows(
                "SELECT a.email FROM signup_mails m JOIN signup_applications a"
                " ON a.id = m.application WHERE m.perhaps_twice = 1")}
            return mails.by_address(), flagged

    def check_killed(self, point, late=None):
        found, flagged = self.kill_at(point, late)
        self.assertEqual(len(found), 10, point)  # none is lost
        twice = {address for address, each in found.items() if len(each) > 1}
        self.assertLessEqual(max(len(each) for each in found.values()), 2)
        self.assertLessEqual(len(twice), 1)
        self.assertLessEqual(twice, flagged)
        self.assertLessEqual(len(flagged), 1)  # those it had only taken were not begun
        for address in twice:
            first, second = found[address]
            self.assertEqual(first["Message-ID"], second["Message-ID"])
            self.assertEqual((first["X-Weir-Perhaps-Twice"], second["X-Weir-Perhaps-Twice"]),
                             (None, "yes"))
        return twice

    def test_O56_a_kill_before_a_mail_was_given_sends_it_once(self):
        for point in "connect", "mail", "rcpt":
            self.assertEqual(self.check_killed(point), set())

    def test_O56_a_kill_between_sending_and_noting_sends_that_one_mail_twice_and_says_so(self):
        self.assertEqual(len(self.check_killed("data")), 1)

    def test_O56_a_kill_soon_after_loses_none_and_doubles_one_at_most(self):
        for late in 0.001, 0.004:
            self.check_killed("data", late)

    def test_a_mail_that_the_server_puts_off_is_tried_again_and_one_it_refuses_is_told(self):
        with Mails() as mails, self.server(PER_HOUR=MANY, PER_DAY=MANY) as server:
            mails.refuse = {"m0@x.test": "451 later", "m1@x.test": "550 no such mailbox"}
            self.queue(server, 3)
            with self.server(folder=server.folder, PER_HOUR=MANY, PER_DAY=MANY, LEASE_SECONDS=2,
                             WORKERS=1, SMTP_URL=mails.url):
                until(lambda: server.count("signup_mails", "tries >= 1") == 3)
                until(lambda: server.backlog()["given_up"] == 1)
                del mails.refuse["m0@x.test"]
                until(lambda: len(mails.by_address()["m0@x.test"]) == 1)
                self.assertEqual(sorted(mails.by_address()), ["m0@x.test", "m2@x.test"])
                mails.refuse.clear()
                server.rows("UPDATE signup_mails SET given_up = NULL")
                until(lambda: len(mails.by_address()["m1@x.test"]) == 1)
            self.assertEqual(server.count("signup_mails", "perhaps_twice = 1"), 0)

    def test_a_mail_whose_connection_breaks_after_its_text_goes_again_and_says_so(self):
        with Mails() as mails, self.server(PER_HOUR=MANY, PER_DAY=MANY) as server:
            mails.cut = {"m1@x.test"}
            self.queue(server, 3)
            with self.server(folder=server.folder, PER_HOUR=MANY, PER_DAY=MANY, LEASE_SECONDS=2,
                             WORKERS=1, SMTP_URL=mails.url):
                until(lambda: server.count("signup_mails", "sent_at IS NOT NULL") == 3)
            found = {address: [mail["X-Weir-Perhaps-Twice"] for mail in each]
                     for address, each in mails.by_address().items()}
            self.assertEqual(found, {"m0@x.test": [None], "m1@x.test": [None, "yes"],
                                     "m2@x.test": [None]})
            self.assertEqual(server.backlog()["perhaps_twice"], 1)

    def test_while_there_is_no_mail_server_mails_wait_and_then_go_once(self):
        port = free_port()
        with self.server(WORKERS=1, LEASE_SECONDS=2,
                         SMTP_URL=f"smtp://127.0.0.1:{port}") as server:
            self.assertEqual(server.apply("a@x.test").status, 303)
            until(lambda: server.count("signup_mails", "tries >= 1") == 1)
            with Mails(port=port) as mails:
                until(lambda: server.count("signup_mails", "sent_at IS NOT NULL") == 1)
                self.assertEqual([address for address, _ in mails.taken], ["a@x.test"])
            self.assertEqual(server.count("signup_mails", "perhaps_twice = 1"), 0)

    def test_O55_when_no_used_token_can_be_remembered_forms_are_handed_back_with_503(self):
        with self.server(SPENT_TOKENS=1) as server:
            self.assertEqual(server.apply("a@x.test").status, 303)
            got = server.apply("b@x.test")
            self.assertEqual((got.status, values_in(got.body)["email"]), (503, "b@x.test"))
            self.assertEqual(server.count("signup_mails"), 1)

    def test_D07_what_piled_up_while_nobody_sent_leaves_no_faster_than_the_caps(self):
        with self.server(PER_HOUR=7, PER_DAY=MANY) as server:
            self.queue(server, 20)  # all due since 1970
            with self.server(folder=server.folder, PER_HOUR=7, PER_DAY=MANY, WORKERS=2):
                until(lambda: server.count("signup_mails", "sent_at IS NOT NULL") == 7)
                time.sleep(2.5)
                self.assertEqual(server.count("signup_mails", "sent_at IS NOT NULL"), 7)
            self.assertEqual(server.backlog()["late"], 13)

    def test_the_operator_sees_the_backlog_and_nobody_else_does(self):
        basic = lambda word: {"Authorization": "Basic " +
                              base64.b64encode(("me:" + word).encode()).decode()}
        with self.server(PER_HOUR=2, PER_DAY=5, WORKERS=1) as server:
            for path in "/operator", "/operator.js", "/operator/backlog":
                for headers in {}, basic(TOKEN + "x"), {"Authorization": "Bearer x"}:
                    got = server.ask("GET", path, headers=headers)
                    self.assertEqual(got.status, 401)
                    self.assertIn("Basic", got.headers["WWW-Authenticate"])
                self.assertEqual(server.ask("GET", path, headers=basic(TOKEN)).status, 200)
            hour = int(time.time() // HOUR)
            for n in range(5):
                server.apply(f"a{n}@x.test")
            until(lambda: len(outbox(server)) == 2)
            until(lambda: server.backlog()["waiting"] == 3)
            seen = server.backlog()
            self.assertEqual((seen["per_hour"], seen["per_day"], seen["late"]), (2, 5, 0))
            at_least_first = seen["hours"][0]
            self.assertEqual(at_least_first, {"hour": hour, "queued": 0, "sent": 2})
            self.assertEqual(sum(each["queued"] for each in seen["hours"]), 3)

    def test_a_sigterm_ends_it_with_0_after_what_was_begun(self):
        with self.server(WORKERS=2) as server:
            server.apply("a@x.test")
            self.assertEqual(server.stop(), 0)


class OnSqlite(Cases, unittest.TestCase):
    databases = Files()

    def test_D12_250_at_0920_are_placed_as_in_the_table(self):
        if sanitized():
            self.skipTest("a library for the clock cannot be loaded first")
        with self.server(clock="2026-01-05 09:20:00") as server:
            self.assertEqual(self.place_250(server), [303] * 250)
            first, day = int(utc("2026-01-05T09:00") // HOUR), 24
            midnight = first + 15
            self.assertEqual(self.placed(server), {
                first: 30, first + 1: 30, first + 2: 30, first + 3: 10,
                midnight: 30, midnight + 1: 30, midnight + 2: 30, midnight + 3: 10,
                midnight + day: 30, midnight + day + 1: 20})

    def test_D33_a_link_lives_from_the_release_of_its_mail_on(self):
        if sanitized():
            self.skipTest("a library for the clock cannot be loaded first")
        life = 24 * HOUR
        with self.server(clock="2026-01-05 09:20:00", PER_DAY=1, WORKERS=1) as server:
            server.apply("a@x.test")
            server.apply("b@x.test")
            until(lambda: len(outbox(server)) == 1)
            server.stop()
            released = utc("2026-01-06T00:00:01")
            again = {"folder": server.folder, "PER_DAY": 1, "WORKERS": 1}
            with self.server(clock="2026-01-06 00:00:01", **again) as later:
                until(lambda: any(mail["To"] == "b@x.test" for mail in outbox(server)))
                mail = [mail for mail in outbox(server) if mail["To"] == "b@x.test"][0]
                [[expires]] = server.rows("SELECT expires_at FROM signup_mails m"
                                          " JOIN signup_applications a ON a.id = m.application"
                                          " WHERE email = 'b@x.test'")
                self.assertAlmostEqual(int(expires) / 1e6, released + life, delta=20)
                self.assertEqual(later.ask("GET", link_in(mail, "confirm")).status, 200)
            with self.server(clock="2026-01-06 23:50:00", **again) as later:
                self.assertEqual(later.ask("GET", link_in(mail, "confirm")).status, 200)
            with self.server(clock="2026-01-07 00:10:00", **again) as later:
                got = later.ask("GET", link_in(mail, "confirm"))
                self.assertEqual(got.status, 410)
                self.assertEqual(values_in(got.body)["email"], "b@x.test")

    def test_a_database_that_cannot_be_written_costs_nobody_his_words(self):
        with self.server() as server:
            token = server.token()
            holder = sqlite3.connect(self.databases.of(server.folder), isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            got = server.apply("a@x.test", token)
            self.assertEqual((got.status, values_in(got.body)["name"]), (503, "A guest"))
            holder.execute("ROLLBACK")
            holder.close()
            self.assertEqual(server.apply("a@x.test", token).status, 303)


class OnPostgres(Cases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.databases = Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.databases.stop()

    def test_D03_two_processes_have_one_limit(self):
        with self.server(PER_CLIENT=3) as one:
            with self.server(PER_CLIENT=3, folder=one.folder) as other:
                got = [server.apply(f"a{n}@x.test").status
                       for n, server in enumerate([one, other, one, other, one])]
                self.assertEqual(got, [303, 303, 303, 429, 429])

    def test_connections_that_the_server_ended_are_made_anew_and_nobody_sees_it(self):
        with self.server() as server:
            with concurrent.futures.ThreadPoolExecutor(8) as many:
                list(many.map(lambda n: server.apply(f"a{n}@x.test"), range(16)))
            server.rows("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                        " WHERE application_name = 'weir-signup'")
            for n in range(16):
                self.assertEqual(server.apply(f"b{n}@x.test").status, 303)

    def test_a_database_that_went_away_costs_nobody_his_words(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        with Server(cluster) as server:
            token = server.token()
            data = cluster.folder + "/data"
            with open(data + "/postmaster.pid", encoding="ascii") as file:
                postmaster = int(file.readline())
            os.kill(postmaster, signal.SIGQUIT)
            until(lambda: not os.path.exists(data + "/postmaster.pid"))
            got = server.apply("a@x.test", token)
            self.assertEqual((got.status, values_in(got.body)["name"]), (503, "A guest"))
            self.assertEqual(server.ask("GET", "/health").status, 503)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if "--postgres" in sys.argv:
        sys.argv[sys.argv.index("--postgres")] = "OnPostgres"
    elif not any(word[0] != "-" for word in sys.argv[1:]):
        sys.argv += ["Settings", "OnSqlite"]
    unittest.main()

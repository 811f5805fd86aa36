# SPDX-License-Identifier: BSL-1.0
"""forms_postgres.test.py PROGRAM: the forms service on PostgreSQL, as processes over real sockets.

What forms.test.py says of the database is said here of a server, test by test. Then what only a
server can be asked: many processes at once, restarts, outages, a pooler. The cluster is a private
one, and each folder has a database of its own in it.
"""

import collections
import concurrent.futures
import contextlib
import http.client
import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent
SECRET = "0123456789abcdef0123456789abcdef"


def load_forms():
    """Its name has a dot, so that it is a test and no module."""
    spec = importlib.util.spec_from_file_location("forms", TOOLS / "forms.test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


forms = load_forms()
Server, code, error = forms.Server, forms.code, forms.error


def tool(name, *arguments):
    subprocess.run([TOOLS / name, *map(str, arguments)], check=True, stdin=subprocess.DEVNULL,
                   timeout=120)


class Cluster:
    """A private server; a folder's database is made when it is first asked for."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-pg-")
        self.made = set()
        self.lock = threading.Lock()
        # What is asked here is what happens when processes die, and not when a machine does.
        tool("postgres", "start", self.folder, "fsync=off", "autovacuum_naptime=5s")

    def stop(self):
        tool("postgres", "stop", self.folder)

    def psql(self, database, sql):
        done = subprocess.run(
            ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "postgres", "-d",
             database, "-c", sql], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @staticmethod
    def name(folder):
        return "f" + re.sub("[^a-z0-9]", "_", os.path.basename(folder).lower())

    def url(self, folder, host=None):
        """Of the server itself, or of what stands before it."""
        where = (host or self.folder).replace("/", "%2F")
        return f"postgresql://postgres@{where}/{self.name(folder)}"

    def of(self, folder):
        with self.lock:
            if folder not in self.made:
                self.psql("postgres", f'CREATE DATABASE "{self.name(folder)}"')
                self.made.add(folder)
        return self.url(folder)

    def ask(self, folder, sql):
        return self.psql(self.name(folder), sql)

    def counters(self, folder):
        return int(self.ask(folder, "SELECT count(*) FROM weir.counters"))

    def dump(self, folder):
        return subprocess.run(["pg_dump", "-h", self.folder, "-U", "postgres", self.name(folder)],
                              check=True, capture_output=True, timeout=60).stdout

    def let_claims_lapse(self, folder):
        wait_until(lambda: self.queued(folder) == 0, 20)

    def queued(self, folder):
        return int(self.ask(folder, "SELECT count(*) FROM weir_forms.deliveries"))

    def submissions(self, folder):
        return self.ask(folder, "SELECT submission_id FROM weir_forms.submissions").split()

    def control(self, deed, *options):
        """Of pg_ctl: stop, start or restart, and the data stay."""
        script = 'source "$0/unprivileged"; cd "$1"; unprivileged "$2/pg_ctl" "${@:3}"'
        bindir = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True,
                                check=False).stdout.strip()
        if not os.path.exists(bindir + "/pg_ctl"):
            bindir = sorted(map(str, pathlib.Path("/usr/lib/postgresql").glob("*/bin")))[-1]
        subprocess.run(["bash", "-c", script, TOOLS, self.folder, bindir, deed, "-D",
                        self.folder + "/data", "-l", self.folder + "/log", "-w", "-s", *options],
                       check=True, stdin=subprocess.DEVNULL, timeout=60)


CLUSTER = None


# ------------------------------------------------------------------- what forms.test.py says

class Limits(forms.Limits):
    pass


class SharedCounters(forms.SharedCounters):
    pass


class Bodies(forms.Bodies):
    pass


class Idempotency(forms.Idempotency):
    pass


class ClientAddress(forms.ClientAddress):
    pass


class Management(forms.Management):
    pass


class Durability(forms.Durability):
    pass


# ------------------------------------------------------------------ what only a server can be asked

def fresh():
    """A folder for one test, whose processes share a database."""
    return tempfile.TemporaryDirectory(prefix="weir-forms-")


@contextlib.contextmanager
def servers(folder, count, **settings):
    """So many processes on one database, each with an outbox of its own."""
    forms.DATABASES.of(folder)
    given = {"RATE_LIMIT_IP_SECRET": SECRET, **settings}
    with contextlib.ExitStack() as stack:
        made = [Server(folder, OUTBOX=f"{folder}/outbox-{n}", **given) for n in range(count)]
        with concurrent.futures.ThreadPoolExecutor(count) as crew:  # all at one moment
            started = list(crew.map(stack.enter_context, made))
        yield started


AMPLE = {"RATE_LIMIT_IP_REQUESTS": 10_000_000, "RATE_LIMIT_ENDPOINT_REQUESTS": 10_000_000}


def post_many(ports, each, barrier, results, headers=None):
    """Of one process of its own: a connection and a thread for each request that is under way."""
    def one(port, number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.connect()
        sent = {"Content-Type": forms.URLENCODED, **(headers(port, number) if headers else {})}
        gate.wait()
        connection.request("POST", "/f/contact", f"n={number}", sent)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body

    gate = threading.Barrier(len(ports) * each, action=barrier.wait)
    with concurrent.futures.ThreadPoolExecutor(len(ports) * each) as crew:
        asked = [crew.submit(one, port, n) for port in ports for n in range(each)]
        results.put([done.result() for done in asked])


def at_once(ports, each, headers=None):
    """For each port a process of clients with so many requests, all sent at one moment."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(len(ports)), context.Queue()
    crew = [context.Process(target=post_many, args=([port], each, barrier, results, headers))
            for port in ports]
    for one in crew:
        one.start()
    answers = [answer for _ in crew for answer in results.get(timeout=60)]
    for one in crew:
        one.join()
    return answers


def wait_until(holds, seconds):
    """How long that took, or a failure."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < seconds, f"not within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - start


def know(crew, endpoint="contact"):
    """Waits until each process knows of an endpoint that one of them made."""
    for each in crew:
        wait_until(lambda s=each: s.ask("GET", "/f/" + endpoint).status == 200, 5)


def delivered(folder, count, expected, seconds=20):
    """The ids in all outboxes, once there are so many and the queue is empty."""
    def lines():
        found = []
        for n in range(count):
            with contextlib.suppress(FileNotFoundError), \
                    open(f"{folder}/outbox-{n}", encoding="utf-8") as file:
                found += [json.loads(line)["submission_id"] for line in file]
        return found

    wait_until(lambda: len(lines()) >= expected and CLUSTER.queued(folder) == 0, seconds)
    return lines()


class ManyProcesses(unittest.TestCase):
    def test_sixteen_that_start_at_once_find_or_make_the_tables(self):
        with fresh() as folder, servers(folder, 16, THREADS=1) as crew:
            crew[0].create("contact")
            know(crew)

    def test_F54_F55_F56_the_subject_is_a_digest_under_a_secret_that_all_share(self):
        with fresh() as folder:
            forms.DATABASES.of(folder)
            with Server(folder, RATE_LIMIT_IP_SECRET=SECRET, RATE_LIMIT_IP_REQUESTS=1) as one:
                one.create("contact")
                self.assertEqual([one.post().status for _ in range(2)], [202, 429])
                keys = CLUSTER.ask(folder, "SELECT key FROM weir.counters").split()
                self.assertEqual(len(keys), 2)
                self.assertNotIn(b"127.0.0.1", CLUSTER.dump(folder))
                self.assertNotIn("no_secret", one.told())
            # Another secret is another subject: one more window, and a warning.
            with Server(folder, RATE_LIMIT_IP_SECRET="x" * 32, RATE_LIMIT_IP_REQUESTS=1) as other:
                self.assertEqual([other.post().status for _ in range(2)], [202, 429])
                self.assertIn("different_secrets", other.told())

    def test_F58_F61_F63_of_320_at_once_the_source_limit_admits_exactly_100(self):
        with fresh() as folder, servers(folder, 8, THREADS=1, RATE_LIMIT_IP_REQUESTS=100) as crew:
            crew[0].create("contact")
            know(crew)
            answers = at_once([each.port for each in crew], 40)
            self.assertEqual(collections.Counter(status for status, _ in answers),
                             {202: 100, 429: 220})
            self.assertEqual({body["error"]["details"]["scope"] for status, body in answers
                              if status == 429}, {"ip"})
            self.assertEqual(len(CLUSTER.submissions(folder)), 100)
            self.assertEqual(len(set(delivered(folder, 8, 100))), 100)

    def test_F62_of_320_at_once_the_endpoint_limit_admits_exactly_100(self):
        settings = {"THREADS": 1, "RATE_LIMIT_IP_REQUESTS": 1, "RATE_LIMIT_ENDPOINT_REQUESTS": 100,
                    "TRUSTED_PROXY_HOPS": 1}
        with fresh() as folder, servers(folder, 8, **settings) as crew:
            crew[0].create("contact")
            know(crew)
            visitor = lambda port, n: {"X-Forwarded-For": f"10.{port // 256}.{port % 256}.{n}"}
            answers = at_once([each.port for each in crew], 40, visitor)
            self.assertEqual(collections.Counter(status for status, _ in answers),
                             {202: 100, 429: 220})
            self.assertEqual({body["error"]["details"]["scope"] for status, body in answers
                              if status == 429}, {"endpoint"})
            self.assertEqual(len(CLUSTER.submissions(folder)), 100)

    def test_F63_F64_under_the_limit_all_pass_and_two_rows_count_them(self):
        with fresh() as folder, servers(folder, 8, THREADS=1, **AMPLE) as crew:
            crew[0].create("contact")
            know(crew)
            answers = at_once([each.port for each in crew], 12)
            self.assertEqual({status for status, _ in answers}, {202})
            counted = CLUSTER.ask(folder, "SELECT second FROM weir.counters").split()
            self.assertEqual(counted, ["96", "96"])

    def test_F65_F66_a_process_that_starts_later_finds_what_is_spent(self):
        with fresh() as folder:
            with servers(folder, 1, RATE_LIMIT_IP_REQUESTS=3) as [one]:
                one.create("contact")
                self.assertEqual([one.post().status for _ in range(3)], [202] * 3)
            with servers(folder, 1, RATE_LIMIT_IP_REQUESTS=3,
                         RATE_LIMIT_ENDPOINT_REQUESTS=4) as [other]:
                refused = other.post()
                self.assertEqual((refused.status, error(refused)["details"]["scope"]), (429, "ip"))
                self.assertRegex(refused.headers["Retry-After"], "^[0-9]+$")
                other.create("second")
                sources = [f"127.0.0.{n}" for n in range(2, 8)]
                self.assertEqual([other.post(source=s).status for s in sources],
                                 [202] + [429] * 5)
                self.assertEqual(other.post("second", source="127.0.0.9").status, 202)

    def test_one_key_at_once_at_two_processes_is_kept_once_and_replayed(self):
        with fresh() as folder, servers(folder, 2, **AMPLE) as crew:
            crew[0].create("contact")
            know(crew)
            # Twenty keys at a time, each with the same content at both, so that batches overlap.
            key = lambda port, n: {"Idempotency-Key": f"key-{n:016d}"}
            answers = [body for status, body in at_once([each.port for each in crew], 20, key)
                       if status == 202]
            self.assertEqual(len(answers), 40)
            self.assertEqual(sum(not each["idempotent_replay"] for each in answers), 20)
            self.assertEqual(len({each["submission_id"] for each in answers}), 20)
            self.assertEqual(len(CLUSTER.submissions(folder)), 20)
            self.assertEqual(sorted(delivered(folder, 2, 20)), sorted(CLUSTER.submissions(folder)))
            conflict = crew[1].post(body="n=other", headers=key(0, 3))
            self.assertEqual(code(conflict), (409, "idempotency_conflict"))

    def test_what_the_operator_does_at_one_process_is_so_at_the_other_at_once(self):
        with fresh() as folder, servers(folder, 2) as (one, other):
            one.create("contact")
            self.assertEqual(other.manage("GET", "/endpoints/contact")[0], 200)
            self.assertEqual(other.manage("PATCH", "/endpoints/contact", {"active": False})[0], 200)
            self.assertIs(one.manage("GET", "/endpoints/contact")[1]["active"], False)
            self.assertEqual(other.manage("POST", "/endpoints", {"id": "contact"})[0], 409)
            self.assertEqual(code(one.post()), (409, "endpoint_inactive"))

    def test_pages_miss_nothing_while_two_processes_write(self):
        with fresh() as folder, servers(folder, 2, **AMPLE) as crew:
            crew[0].create("contact")
            know(crew)
            ends = time.monotonic() + 2
            flood = [threading.Thread(target=self.post_until, args=(each, ends))
                     for each in crew * 4]
            for each in flood:
                each.start()
            seen, after = [], ""
            while time.monotonic() < ends + 0.3:
                _, page = crew[0].manage("GET", f"/endpoints/contact/submissions?after={after}")
                seen += [each["submission_id"] for each in page["submissions"]]
                after = seen[-1] if seen else ""
            for each in flood:
                each.join()
            seen += [each["submission_id"] for each in
                     crew[0].manage("GET", "/endpoints/contact/submissions?limit=1000&after="
                                    + after)[1]["submissions"]]
            self.assertEqual(sorted(seen), sorted(CLUSTER.submissions(folder)))
            self.assertGreater(len(seen), 50)

    @staticmethod
    def post_until(server, ends):
        while time.monotonic() < ends:
            server.post()


class Deliveries(unittest.TestCase):
    def test_two_processes_deliver_each_submission_exactly_once(self):
        with fresh() as folder, servers(folder, 2, **AMPLE) as crew:
            crew[0].create("contact")
            know(crew)
            flood = forms.Durability().flood
            with concurrent.futures.ThreadPoolExecutor(2) as both:
                accepted = sum(both.map(lambda s: flood(s, 1.5, s.stop), crew), [])
            lines = delivered(folder, 2, len(accepted))
            self.assertGreater(len(accepted), 100)
            self.assertEqual(sorted(lines), sorted(accepted))

    def test_what_a_killed_process_had_claimed_is_delivered_by_another(self):
        with fresh() as folder, servers(folder, 2, **AMPLE) as crew:
            crew[0].create("contact")
            know(crew)
            accepted = forms.Durability().flood(crew[0], 0.7,
                                                lambda: crew[0].stop(signal.SIGKILL))
            self.assertEqual(set(accepted) - set(CLUSTER.submissions(folder)), set())
            # As if it had been killed just after its claim, which is too short a time to hit.
            kept = json.loads(crew[1].post().body)["submission_id"]
            delivered(folder, 2, 1)
            CLUSTER.ask(folder, "INSERT INTO weir_forms.deliveries SELECT seq, clock_timestamp()"
                                f" FROM weir_forms.submissions WHERE submission_id = '{kept}'")
            lines = delivered(folder, 2, len(CLUSTER.submissions(folder)) + 1, 40)
            self.assertEqual(lines.count(kept), 2)
            self.assertEqual(set(CLUSTER.submissions(folder)) - set(lines), set())


class Faults(unittest.TestCase):
    def flood(self, crew, ends, keys=False):
        """Over many connections; every status, and the ids that were accepted."""
        statuses, accepted, slowest, lock = collections.Counter(), [], [0.0], threading.Lock()

        def one(server, number):
            sent = 0
            while time.monotonic() < ends:
                sent += 1
                headers = {"Idempotency-Key": f"{number:08d}-{sent:08d}"} if keys else {}
                begin = time.monotonic()
                answer = server.post(headers=headers)
                took = time.monotonic() - begin
                with lock:
                    statuses[answer.status] += 1
                    slowest[0] = max(slowest[0], took)
                    if answer.status == 202:
                        accepted.append(json.loads(answer.body)["submission_id"])
                if answer.status == 503:
                    time.sleep(0.02)

        crew = [threading.Thread(target=one, args=(server, n))
                for n, server in enumerate(crew * 8)]
        for each in crew:
            each.start()
        return crew, statuses, accepted, slowest

    def test_a_restart_under_load_loses_nothing_that_was_accepted(self):
        for mode in ("fast", "immediate"):
            with self.subTest(mode), fresh() as folder, servers(folder, 2, **AMPLE) as crew:
                crew[0].create("contact")
                know(crew)
                flood, statuses, accepted, slowest = self.flood(crew, time.monotonic() + 4)
                time.sleep(1)
                CLUSTER.control("restart", "-m", mode)
                for each in flood:
                    each.join()
                self.assertEqual(set(statuses) - {202, 503}, set())
                kept = CLUSTER.submissions(folder)
                self.assertEqual(set(accepted) - set(kept), set())
                self.assertEqual(len(kept), len(set(kept)))
                self.assertEqual(len(accepted), len(set(accepted)))
                self.assertLess(slowest[0], 5)
                lines = delivered(folder, 2, len(kept), 40)
                self.assertEqual(sorted(lines), sorted(kept))
                for each in crew:
                    self.assertLessEqual(each.told().count("the storage fails"), 3, each.told())

    def test_F60_without_its_database_all_that_needs_it_is_503_soon_and_well_again_soon(self):
        with fresh() as folder, servers(folder, 1, **AMPLE) as [server]:
            server.create("contact")
            self.assertEqual(server.post().status, 202)
            CLUSTER.control("stop", "-m", "immediate")
            try:
                for method, path in (("POST", "/f/contact"), ("GET", "/api/endpoints"),
                                     ("GET", "/api/endpoints/contact"),
                                     ("GET", "/api/endpoints/contact/submissions"),
                                     ("POST", "/api/endpoints"),
                                     ("PATCH", "/api/endpoints/contact")):
                    begin = time.monotonic()
                    body = "n=1" if path.startswith("/f/") else '{"id":"new-one"}'
                    answer = server.ask(method, path, body, {
                        "Content-Type": forms.URLENCODED,
                        "Authorization": "Bearer " + forms.TOKEN})
                    self.assertLess(time.monotonic() - begin, 2.5, path)
                    self.assertEqual(code(answer), (503, "storage_unavailable"), path)
                    self.assertNotIn("Retry-After", answer.headers)
                self.assertEqual(server.ask("GET", "/health").status, 503)
                self.assertEqual(server.ask("GET", "/f/contact").status, 200)
                # Soon told at once: nobody waits for a server that is known to be away.
                for _ in range(6):
                    server.post()
                begin = time.monotonic()
                for _ in range(20):
                    self.assertEqual(server.post().status, 503)
                self.assertLess(time.monotonic() - begin, 2)
            finally:
                CLUSTER.control("start")
            wait_until(lambda: server.post().status == 202, 2)
            wait_until(lambda: server.ask("GET", "/health").status == 200, 2)
            self.assertEqual(server.manage("GET", "/endpoints/contact")[0], 200)
            self.assertEqual(server.told().count("the storage fails"), 1, server.told())
            self.assertEqual(server.told().count("the storage works again"), 1, server.told())

    def test_without_limits_an_outage_is_503_too(self):
        with fresh() as folder, servers(folder, 1, RATE_LIMIT_ENABLED="false") as [server]:
            server.create("contact")
            CLUSTER.control("stop", "-m", "fast")
            try:
                begin = time.monotonic()
                self.assertEqual(code(server.post()), (503, "storage_unavailable"))
                self.assertLess(time.monotonic() - begin, 2.5)
                self.assertEqual(server.ask("GET", "/health").status, 503)
            finally:
                CLUSTER.control("start")
            wait_until(lambda: server.post().status == 202, 2)

    def test_a_server_that_stands_still_is_503_within_the_deadline(self):
        with fresh() as folder, servers(folder, 1, COUNTERS="memory",
                                        **AMPLE) as [server]:
            server.create("contact")
            self.assertEqual(server.post().status, 202)
            backends = CLUSTER.ask(folder, "SELECT pid FROM pg_stat_activity WHERE backend_type ="
                                           " 'client backend' AND pid <> pg_backend_pid()").split()
            for pid in backends:
                os.kill(int(pid), signal.SIGSTOP)
            try:
                begin = time.monotonic()
                self.assertEqual(code(server.post()), (503, "storage_unavailable"))
                self.assertLess(time.monotonic() - begin, 2.5)
            finally:
                for pid in backends:
                    os.kill(int(pid), signal.SIGCONT)
            wait_until(lambda: server.post().status == 202, 4)

    def test_a_restart_while_nobody_asks_is_not_noticed(self):
        with fresh() as folder, servers(folder, 1, **AMPLE) as [server]:
            server.create("contact")
            self.assertEqual(server.post().status, 202)
            CLUSTER.control("restart", "-m", "fast")
            wait_until(lambda: server.post().status == 202, 2)

    def test_kill_9_of_one_process_loses_nothing_accepted(self):
        with fresh() as folder, servers(folder, 2, **AMPLE) as (one, other):
            one.create("contact")
            know([one, other])
            accepted = forms.Durability().flood(one, 0.7, lambda: one.stop(signal.SIGKILL))
            self.assertGreater(len(accepted), 50)
            self.assertEqual(other.post().status, 202)
            kept = CLUSTER.submissions(folder)
            self.assertEqual(set(accepted) - set(kept), set())
            self.assertEqual(len(kept), len(set(kept)))

    def test_one_that_the_server_does_not_take_leaves_the_others_alone(self):
        with fresh() as folder, servers(folder, 1, **AMPLE) as [server]:
            server.create("contact")
            CLUSTER.ask(folder, "CREATE FUNCTION weir_forms.no() RETURNS trigger LANGUAGE plpgsql"
                        " AS $$ BEGIN IF NEW.fields LIKE '%poison%' THEN RAISE EXCEPTION 'no'"
                        " USING ERRCODE = '22000'; END IF; RETURN NEW; END $$;"
                        " CREATE TRIGGER no BEFORE INSERT ON weir_forms.submissions"
                        " FOR EACH ROW EXECUTE FUNCTION weir_forms.no()")
            bodies = ["n=poison" if n % 8 == 0 else f"n={n}" for n in range(32)]
            with concurrent.futures.ThreadPoolExecutor(32) as crew:
                statuses = list(crew.map(lambda body: server.post(body=body).status, bodies))
            self.assertEqual(collections.Counter(statuses), {202: 28, 503: 4})
            self.assertEqual(server.ask("GET", "/health").status, 200)


class Pooler(unittest.TestCase):
    def setUp(self):
        if not shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin"):
            self.skipTest("pgbouncer is not installed")
        self.pool = tempfile.mkdtemp(prefix="weir-pool-")
        tool("pgbouncer", "start", self.pool, CLUSTER.folder)
        self.addCleanup(tool, "pgbouncer", "stop", self.pool)

    def test_everything_works_in_transaction_mode(self):
        with fresh() as folder:
            forms.DATABASES.of(folder)
            settings = {"DATABASE": CLUSTER.url(folder, self.pool), "RATE_LIMIT_IP_REQUESTS": 100,
                        "THREADS": 1}
            with servers(folder, 4, **settings) as crew:
                crew[0].create("contact")
                know(crew)
                answers = at_once([each.port for each in crew], 40)
                self.assertEqual(collections.Counter(status for status, _ in answers),
                                 {202: 100, 429: 60})
                self.assertEqual(sorted(delivered(folder, 4, 100)),
                                 sorted(CLUSTER.submissions(folder)))
                self.assertEqual(len(crew[1].stored()), 100)


class Starting(unittest.TestCase):
    def test_no_server_is_told_and_ends_with_1_and_no_password_is(self):
        done = forms.try_to_start(
            DATABASE="postgresql://me:s3cret-word@127.0.0.1:1/forms?connect_timeout=2")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("127.0.0.1", done.stderr)
        self.assertNotIn("s3cret", done.stderr)

    def test_a_schema_of_another_version_is_left_alone(self):
        with fresh() as folder:
            forms.DATABASES.of(folder)
            CLUSTER.ask(folder, "CREATE SCHEMA weir_forms; COMMENT ON SCHEMA weir_forms IS"
                                " 'weir-forms 99'")
            done = forms.try_to_start(DATABASE=CLUSTER.url(folder))
            self.assertEqual(done.returncode, 1)
            self.assertIn("weir-forms 99", done.stderr)

    def test_a_database_that_is_not_in_UTF8_is_refused(self):
        CLUSTER.psql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
        done = forms.try_to_start(DATABASE=CLUSTER.url("latin").replace("/flatin", "/latin"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("UTF8", done.stderr)


if __name__ == "__main__":
    forms.PROGRAM = os.path.abspath(sys.argv[1])
    CLUSTER = forms.DATABASES = Cluster()
    # Not for ever, whatever happens: a cluster is processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        unittest.main(argv=sys.argv[:1] + sys.argv[2:])
    finally:
        CLUSTER.stop()

# SPDX-License-Identifier: BSL-1.0
"""forms.py WEIR_FORMS WEIR_BENCH_ADMIT: what the limits of the forms service cost, and how fast it
keeps submissions. bench/run forms builds both programs and starts this.

The two sides of a ratio run in turn and change places after every pair; a ratio is the median over
the pairs. On SQLite the server has one core and wrk, if there is another, that other one. On
PostgreSQL all programs share what cores there are.
"""

import collections
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

from rivals import plain_forms

PAIRS = 11
PAIRS_ON_POSTGRES = 7
CONNECTIONS = 64
AMPLE = 1_000_000_000
YEAR = "31536000"  # seconds; no window ends while this runs
TOKEN = "operator-token-0123456789"
FIELDS = {"name": "A visitor", "email": "visitor@example.org",
          "message": "The engine weaves algebraic patterns as the loom weaves flowers and leaves."}

CORES = sorted(os.sched_getaffinity(0))
LOAD_CORE, SERVER_CORE = (CORES * 2)[:2]

Run = collections.namedtuple("Run", "cpu_us rate")  # of one request; requests a second


def wrk_text(text):
    return "'" + text.replace("'", "\\'") + "'"


SUBMISSION = "wrk.method = 'POST'\nwrk.body = {}\nwrk.headers['Content-Type'] = '{}'\n".format(
    wrk_text("&".join(f"{name}={value.replace(' ', '+')}" for name, value in FIELDS.items())),
    "application/x-www-form-urlencoded")

# As behind one proxy: 20,000 clients, each with a counter of its own.
CLIENTS = 20_000
MADE_CLIENTS = SUBMISSION + """
local made, at = {}, 0
function init()
    for i = 1, 20000 do
        wrk.headers['X-Forwarded-For'] = string.format('10.7.%d.%d', i / 250, i % 250 + 1)
        made[i] = wrk.format()
    end
end
"""
MANY_CLIENTS = MADE_CLIENTS + """
function request()
    at = at % #made + 1
    return made[at]
end
"""

# Of ten attempts one is of an address that was never seen before; which ones, is told by a number. The
# others are drawn by `drawn`.
STRANGERS_TOO = MADE_CLIENTS + """
local stranger = RUN * 2097152
function request()
    at = at + 1
    if at % 10 > 0 then return made[drawn()] end
    stranger = stranger + 1
    local address = string.format('%d.%d.%d.%d', 11 + math.floor(stranger / 16777216),
        math.floor(stranger / 65536) % 256, math.floor(stranger / 256) % 256, stranger % 256)
    return (made[1]:gsub('10%.7%.0%.2', address))
end
"""
EVENLY = STRANGERS_TOO + """
function drawn()
    return math.random(#made)
end
"""
BY_ZIPF = STRANGERS_TOO + """
local sums, draws, last = {}, {}, 0
for i = 1, 20000 do sums[i] = (sums[i - 1] or 0) + i ^ -1.1 end
for n = 1, 100000 do
    local low, high, wanted = 1, #sums, math.random() * sums[#sums]
    while low < high do
        local middle = math.floor((low + high) / 2)
        if sums[middle] < wanted then low = middle + 1 else high = middle end
    end
    draws[n] = low
end
function drawn()
    last = last % #draws + 1
    return draws[last]
end
"""

REPORT = """
function done(summary)
    local wrong = summary.errors
    print('counted', summary.requests, summary.duration, wrong.status,
          wrong.connect + wrong.read + wrong.write + wrong.timeout)
end
"""


# ------------------------------------------------------------------------------- the server

def cpu_clock(pid):
    """The clock of a process, all of its threads: in nanoseconds, where /proc counts ticks."""
    clock = ctypes.c_int()
    failed = ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
    if failed:
        raise OSError(failed, os.strerror(failed))
    return clock.value


class Server:
    """weir-forms in a folder of its own with one endpoint, /f/bench."""

    def __init__(self, program, folder, **settings):
        folder.mkdir()
        self.folder = folder
        self.database = folder / "forms.db"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FORMS_")}
        ours = {"LISTEN": "127.0.0.1:0", "ADMIN_TOKEN": TOKEN, "DATABASE": str(self.database),
                "OUTBOX": str(folder / "outbox"), "THREADS": "1",
                "RATE_LIMIT_IP_WINDOW_SECONDS": YEAR, "RATE_LIMIT_ENDPOINT_WINDOW_SECONDS": YEAR}
        given = {"FORMS_" + name: value for name, value in {**ours, **settings}.items()}
        self.process = subprocess.Popen([program], env={**kept, **given}, text=True,
                                        stdout=subprocess.PIPE)
        self.clock = cpu_clock(self.process.pid)

    def __enter__(self):
        try:
            first = self.process.stdout.readline()
            self.address = re.fullmatch(r"listening on http://(\S+)\n", first)[1]
            self.ask("/api/endpoints", '{"id":"bench"}', 201, Authorization="Bearer " + TOKEN)
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def ask(self, path, body, expected, **headers):
        """One request of our own."""
        to = http.client.HTTPConnection(self.address, timeout=10)
        to.request("POST", path, body, headers)
        status = to.getresponse().status
        to.close()
        if status != expected:
            sys.exit(f"forms.py: {path} was answered with {status}")

    def settle(self):
        """Waits until what was accepted is delivered: its CPU time belongs to the requests."""
        for _ in range(200):
            before = time.clock_gettime(self.clock)
            time.sleep(0.1)
            if time.clock_gettime(self.clock) - before < 0.001:
                return
        sys.exit("forms.py: the server does not come to rest")

    def wrk(self, path, script, seconds, cores):
        """Requests, microseconds, and how many of them had an error for an answer, and none."""
        name = self.folder / "load.lua"
        name.write_text(script + REPORT)
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(name),
                   f"http://{self.address}{path}"]
        told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
        return map(int, re.search(r"counted\s+(.*)", told.stdout)[1].split())

    def load(self, path, script, refused=False, seconds=1):
        """So long under wrk. Exits if anything was not answered as it should be."""
        before = time.clock_gettime(self.clock)
        requests, microseconds, errors, broken = self.wrk(path, script, seconds, {LOAD_CORE})
        self.settle()
        spent = time.clock_gettime(self.clock) - before
        if broken or requests == 0 or errors != (requests if refused else 0):
            sys.exit(f"forms.py: {path}: of {requests} requests {errors} had an error for an "
                     f"answer and {broken} none")
        return Run(spent * 1e6 / requests, requests * 1e6 / microseconds)


class OnPostgres(Server):
    """With its counters, and everything else, in a database of its own; on all cores."""

    def __init__(self, program, folder, cluster, per_source):
        self.cluster, self.runs = cluster, 0
        self.url = cluster.make(folder.name)
        super().__init__(program, folder, DATABASE=self.url, RATE_LIMIT_IP_SECRET=TOKEN,
                         RATE_LIMIT_IP_REQUESTS=str(per_source), TRUSTED_PROXY_HOPS="1",
                         RATE_LIMIT_ENDPOINT_REQUESTS=str(AMPLE))

    def kept(self):
        return int(self.cluster.ask(self.url, "SELECT count(*) FROM weir_forms.submissions"))

    def spend(self):
        """What all clients have, if that is one."""
        seconds = 1
        while self.kept() < CLIENTS:  # each run begins with the first client
            self.wrk("/f/bench", MANY_CLIENTS, seconds, CORES)
            seconds *= 2

    def attempts(self, script, accepted, seconds=2):
        """A second. Exits if not so many of them were accepted, or not all that were are kept."""
        before, self.runs = self.kept(), self.runs + 1
        requests, microseconds, errors, broken = self.wrk(
            "/f/bench", script.replace("RUN", str(self.runs)), seconds, CORES)
        self.settle()
        share, unheard = 1 - errors / requests, self.kept() - before - (requests - errors)
        if broken or abs(share - accepted) > 0.005 or not 0 <= unheard <= CONNECTIONS:
            sys.exit(f"forms.py: of {requests} attempts {errors} were refused, {broken} not answered,"
                     f" and {unheard} kept that nobody was told of")
        return requests * 1e6 / microseconds


# ------------------------------------------------------------------------------- the other sides

class Inserts:
    """The rows of a submission as the server keeps them, by one writer, a transaction each."""

    def __init__(self, folder, like):
        folder.mkdir()
        self.made = 0
        self.fields = json.dumps([[name, value] for name, value in FIELDS.items()])
        self.on = sqlite3.connect(folder / "inserts.db", isolation_level=None)
        self.on.execute("PRAGMA journal_mode = WAL")
        self.on.execute("PRAGMA synchronous = FULL")
        with contextlib.closing(sqlite3.connect(like)) as original:
            for (sql,) in original.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
                self.on.execute(sql)

    def insert(self):
        self.made += 1
        self.on.execute("BEGIN IMMEDIATE")
        self.on.execute("INSERT INTO submissions (submission_id, endpoint_id, received_at,"
                        " field_count, fields) VALUES (?, 'bench', '2026-01-31T12:00:00Z', ?, ?)",
                        (f"019c1300-0000-7000-8000-{self.made:012x}", len(FIELDS), self.fields))
        self.on.execute("INSERT INTO deliveries (seq) VALUES (last_insert_rowid())")
        self.on.execute("COMMIT")

    def a_second(self):
        made, start = self.made, time.monotonic()
        while time.monotonic() - start < 1:
            self.insert()
        return (self.made - made) / (time.monotonic() - start)


def instructions(program, decisions):
    """What a run of so many decisions executes, under callgrind."""
    told = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                           program, f"--only-decide={decisions}"],
                          capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", told.stderr)[1])


def instructions_a_decision(program):
    """The start of the program is in both runs, and so in neither."""
    return (instructions(program, 110_000) - instructions(program, 10_000)) / 100_000


# ------------------------------------------------------------------------------- the comparison

def in_turn(one, other, turns=PAIRS):
    """What each side returned, pair by pair. The first run of each warms up and is dropped."""
    sides = [one, other]
    results = {side: [side()][1:] for side in sides}
    for _ in range(turns):
        for side in sides:
            results[side].append(side())
        sides.reverse()
    return results[one], results[other]


def submissions(program, folder):
    """With and without limits; under limits and as plain inserts."""
    ample = {"RATE_LIMIT_IP_REQUESTS": str(AMPLE), "RATE_LIMIT_ENDPOINT_REQUESTS": str(AMPLE),
             "TRUSTED_PROXY_HOPS": "1"}
    with Server(program, folder / "limited", **ample) as limited, \
            Server(program, folder / "free", RATE_LIMIT_ENABLED="false", **ample) as free:
        # Longer: what differs is small beside the commits, whose size depends on the disk.
        costs = in_turn(lambda: limited.load("/f/bench", MANY_CLIENTS, seconds=2),
                        lambda: free.load("/f/bench", MANY_CLIENTS, seconds=2), 2 * PAIRS)
        inserts = Inserts(folder / "inserts", limited.database)
        return costs, in_turn(lambda: limited.load("/f/bench", MANY_CLIENTS), inserts.a_second)


def refusals(program, folder):
    with Server(program, folder / "full", RATE_LIMIT_IP_REQUESTS="1") as full:
        full.ask("/f/bench", json.dumps(FIELDS), 202, **{"Content-Type": "application/json"})
        return in_turn(lambda: full.load("/f/bench", SUBMISSION, refused=True),
                       lambda: full.load("/health", ""))


LOADS = {  # what a client may send in a year, and how many of ten attempts are of strangers
    "9 of 10 refused, by Zipf's law": (BY_ZIPF, 1, 1),
    "9 of 10 refused, evenly": (EVENLY, 1, 1),
    "all accepted": (MANY_CLIENTS, AMPLE, 0),
}


def attempts_on_postgres(program, folder):
    """By the name of the load: what weir-forms did, what the plain flow did, and in which shape."""
    os.sched_setaffinity(0, CORES)
    measured = {}
    with plain_forms.Cluster() as cluster:
        for name, (script, most, strangers) in LOADS.items():
            with OnPostgres(program, folder / f"load{len(measured)}", cluster, most) as server:
                if most == 1:
                    server.spend()
                plain = plain_forms.Plain(
                    cluster, server.url, spent=CLIENTS if most == 1 else 0, strangers=strangers,
                    clients=CLIENTS, zipf=int(script == BY_ZIPF), per_source=most, per_form=AMPLE,
                    fields=json.dumps([[name, value] for name, value in FIELDS.items()]))
                accepted = strangers / 10 if most == 1 else 1
                measured[name] = *in_turn(partial(server.attempts, script, accepted), plain.best,
                                          PAIRS_ON_POSTGRES), plain.shape
    return measured


def row(name, values, digits):
    low, middle, high = statistics.quantiles(values, n=4)
    half = f"{low:,.{digits}f} – {high:,.{digits}f}"
    print(f"{name:<40}{middle:>10,.{digits}f}{half:>20}", flush=True)
    return middle


def pairs(name, above, below):
    return row(name, [one / other for one, other in zip(above, below)], 3)


def reach(figure, value, kind, bound):
    """As bench/reach.hpp prints it."""
    met = value <= bound if kind == "<=" else value >= bound
    print(f"reach {figure} {value:.2f} {kind}{bound:.2f} {'ok' if met else 'short'}")


def tell_of_postgres(measured):
    """The ratio of each load."""
    print(f"{'on PostgreSQL: attempts a second':<40}{'median':>10}{'middle half':>20}")
    for name, (ours, plain, (clients, whole)) in measured.items():
        row(name, ours, 0)
        row(f"  plain, {clients} clients, {'one transaction' if whole else 'three'}", plain, 0)
        yield pairs("  weir-forms / plain", ours, plain)


def main(forms, admit):
    missing = [needed for needed in ("wrk", "valgrind") if not shutil.which(needed)]
    if missing:
        sys.exit(f"forms.py: it needs {' and '.join(missing)}")
    os.sched_setaffinity(0, {SERVER_CORE})  # for all that is started here, but wrk
    build = pathlib.Path(__file__).resolve().parent.parent / "build"
    build.mkdir(exist_ok=True)
    print(f"{PAIRS} pairs, twice as many with and without limits; {CONNECTIONS} connections; cores "
          f"{SERVER_CORE} and {LOAD_CORE}; load before: {os.getloadavg()[0]:.1f}; about 5 minutes")
    print(f"{'':<40}{'median':>10}{'middle half':>20}", flush=True)

    # On the disk of the repository: a folder for temporary files may be in memory.
    with tempfile.TemporaryDirectory(prefix="weir-bench-forms-", dir=build) as made:
        folder = pathlib.Path(made)
        costs, (kept, inserts) = submissions(forms, folder)
        answers = refusals(forms, folder)
        on_postgres = attempts_on_postgres(forms, folder)

    limited, free = ([run.cpu_us for run in side] for side in costs)
    row("202 under limits, CPU µs a request", limited, 2)
    row("202 without limits", free, 2)
    cost = pairs("  with / without", limited, free)
    refused, health = ([run.cpu_us for run in side] for side in answers)
    row("429 for the source, CPU µs a request", refused, 2)
    row("200 of GET /health", health, 2)
    refusal = pairs("  429 / 200", refused, health)
    rates = [run.rate for run in kept]
    row("202 under limits, a second", rates, 0)
    row("SQLite, a transaction each, a second", inserts, 0)
    faster = pairs("  202 / SQLite", rates, inserts)
    decision = instructions_a_decision(admit)
    print(f"{'instructions a decision':<40}{decision:>10,.0f}")
    by_zipf, _, accepted = tell_of_postgres(on_postgres)

    reach("forms_limits_cost_percent", (cost - 1) * 100, "<=", 3)
    reach("instructions_a_decision", decision, "<=", 300)
    reach("forms_refused/health", refusal, "<=", 1.2)
    reach("forms_accepted/transaction_each", faster, ">=", 5)
    reach("forms_postgres_attempts/plain", by_zipf, ">=", 3)
    reach("forms_postgres_accepted/plain", accepted, ">=", 3)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: bench/run forms")
    main(*sys.argv[1:])

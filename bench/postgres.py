# SPDX-License-Identifier: BSL-1.0
"""postgres.py WEIR_BENCH_POSTGRES: limits on PostgreSQL, beside pgbench running the plain prepared
single-row upsert on the same server with the same durability. bench/run postgres builds the program
and starts this; the server is a private one, made for it.

All runs of a round follow one another; a figure is the median over the rounds, and a ratio the median
of the rounds' ratios. pgbench counts with the best of 1, 8 and 32 clients.
"""

import collections
import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 3
SECONDS = 2
KEYS = 100_000
CLIENTS = (1, 8, 32)
TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tests/tools"

UPSERT = ("INSERT INTO plain AS p (key, start, used) VALUES ({key}, 1, 1) "
          "ON CONFLICT (key) DO UPDATE SET used = p.used + 1 RETURNING used;\n")
HOT = UPSERT.format(key=1)
RANDOM = f"\\set k random(1, {KEYS})\n" + UPSERT.format(key=":k")
TWO_ROWS = (f"\\set a random(1, {KEYS})\n\\set b random({KEYS} + 1, 2 * {KEYS})\nBEGIN;\n"
            + UPSERT.format(key=":a") + UPSERT.format(key=":b") + "COMMIT;\n")

# What a crash of the server forgets: everything, the last moments, nothing.
DURABILITIES = {
    "unlogged": {"table": "UNLOGGED", "synchronous_commit": "off"},
    "async": {"table": "", "synchronous_commit": "off"},
    "durable": {"table": "", "synchronous_commit": "on"},
}

Load = collections.namedtuple("Load", "rate p50 p99 rate_per_core")


class Server:
    """A private PostgreSQL and the two programs that ask it."""

    def __init__(self, program, folder, durability):
        self.program, self.folder, self.durability = program, folder, durability
        self.conninfo = f"host={folder} user=postgres dbname=postgres"
        subprocess.run(["bash", TOOLS / "postgres", "start", folder, "shared_buffers=256MB",
                        "synchronous_commit=" + DURABILITIES[durability]["synchronous_commit"]],
                       check=True, stdout=subprocess.DEVNULL)
        self.sql(f"CREATE {DURABILITIES[durability]['table']} TABLE plain "
                 "(key bigint PRIMARY KEY, start bigint, used bigint) WITH (fillfactor = 70)")

    def stop(self):
        subprocess.run(["bash", TOOLS / "postgres", "stop", self.folder], check=False)

    def sql(self, text):
        made = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", self.conninfo, "-c", text],
                              check=True, capture_output=True, text=True)
        return made.stdout.strip()

    def weir(self, load, keys, callers, seconds=SECONDS, named=False):
        environment = dict(os.environ)
        if self.durability == "unlogged":
            environment["WEIR_UNLOGGED"] = "1"
        if named:
            environment["WEIR_NAMED"] = "1"
        made = subprocess.run([self.program, self.conninfo, load, str(keys), str(callers), str(seconds)],
                              check=True, capture_output=True, text=True, env=environment)
        return Load(*(float(word) for word in made.stdout.split()))

    def pgbench(self, script, clients):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, "script.sql")
            path.write_text(script, encoding="utf-8")
            made = subprocess.run(
                [pgbench_path(), "-h", self.folder, "-U", "postgres", "-n", "-M", "prepared",
                 "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(SECONDS), "-f", path,
                 "-l", "--log-prefix", f"{scratch}/log", "postgres"],
                check=True, capture_output=True, text=True)
            rate = float(re.search(r"tps = ([\d.]+)", made.stdout).group(1))
            micros = sorted(int(line.split()[2]) for log in pathlib.Path(scratch).glob("log.*")
                            for line in log.read_text(encoding="utf-8").splitlines())
        return Load(rate, micros[len(micros) // 2], micros[len(micros) * 99 // 100], 0)

    def best(self, script):
        return max((self.pgbench(script, clients) for clients in CLIENTS), key=lambda run: run.rate)


def pgbench_path():
    folder = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True)
    return pathlib.Path(folder.stdout.strip(), "pgbench")


@contextlib.contextmanager
def server(program, durability):
    folder = tempfile.mkdtemp(prefix="weir-")
    running = Server(program, folder, durability)
    try:
        yield running
    finally:
        running.stop()


class Figures:
    """What was measured, round by round, under the name it is printed with."""

    def __init__(self):
        self.rounds = collections.defaultdict(list)

    def add(self, name, value):
        self.rounds[name].append(value)
        return value

    def ratio(self, above, below):
        return statistics.median(a / b for a, b in zip(self.rounds[above], self.rounds[below]))

    def median(self, name):
        return statistics.median(self.rounds[name])


def measure(figures, durability, running):
    """One round on one durability."""
    of = lambda name: f"{durability} {name}"
    figures.add(of("hot, pgbench"), running.best(HOT).rate)
    figures.add(of("hot, 128 blocking"), running.weir("blocking", 1, 128).rate)
    figures.add(of("hot, 512 by callback"), running.weir("callback", 1, 512).rate)
    if durability == "durable":
        return
    figures.add(of("random, pgbench"), running.best(RANDOM).rate)
    figures.add(of("random, 128 blocking"), running.weir("blocking", KEYS, 128).rate)
    figures.add(of("random, 512 by callback"), running.weir("callback", KEYS, 512).rate)
    figures.add(of("two rows, pgbench"), running.best(TWO_ROWS).rate)
    figures.add(of("two rows, admit_all of 32"), running.weir("set", KEYS, 32).rate)
    figures.add(of("lone p50, pgbench"), running.pgbench(RANDOM, 1).p50)
    figures.add(of("lone p50, unnamed"), running.weir("blocking", KEYS, 1).p50)
    figures.add(of("lone p50, named"), running.weir("blocking", KEYS, 1, named=True).p50)


def measure_flood(figures, running):
    """A thousand keys whose limit is spent, asked as fast as one core can."""
    keys, seconds = 1_000, 4
    count = "SELECT coalesce(sum(n_tup_ins + n_tup_upd), 0) FROM pg_stat_user_tables " \
            "WHERE relname = 'counters'"
    before = int(running.sql(count))
    figures.add("flood on 1,000 spent keys, a core", running.weir("flood", keys, 1, seconds).rate_per_core)
    running.sql("SELECT pg_stat_force_next_flush()")
    rows = int(running.sql(count)) - before - keys  # each was admitted once
    figures.add("flood: statements a key and second", rows / keys / seconds)


def measure_sweep(figures, running):
    """The speed of askers while a million recovered rows go, against that without them."""
    alone = running.weir("blocking", KEYS, 32, 4).rate
    running.sql("INSERT INTO weir.counters SELECT gen_random_uuid(), 0, 1, 0, 1, 1 "
                "FROM generate_series(1, 1000000)")
    running.sql("CHECKPOINT")
    swept = running.weir("blocking", KEYS, 32, 4).rate
    left = int(running.sql("SELECT count(*) FROM weir.counters WHERE recovered_at = 1"))
    figures.add("askers beside a sweep / alone", swept / alone)
    figures.add("rows swept a second", (1_000_000 - left) / 4)
    running.sql("DELETE FROM weir.counters WHERE recovered_at = 1")


def print_table(figures):
    width = max(len(name) for name in figures.rounds)
    for name, values in figures.rounds.items():
        spread = " … ".join(f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
                            for value in (min(values), max(values)))
        median = figures.median(name)
        text = f"{median:,.2f}" if median < 100 else f"{median:,.0f}"
        print(f"{name:<{width}}  {text:>12}   ({spread})")


def print_reach(figures):
    def reach(name, value, goal):
        limit = float(re.sub(r"[<>=]", "", goal))
        held = value <= limit if goal.startswith("<=") else value >= limit
        print(f"reach {name} {value:.2f} {goal} {'ok' if held else 'short'}")

    for kind in ("unlogged", "async"):
        ratio = lambda above, below: figures.ratio(f"{kind} {above}", f"{kind} {below}")
        reach(f"postgres_{kind}_hot_blocking/pgbench", ratio("hot, 128 blocking", "hot, pgbench"), ">=10")
        reach(f"postgres_{kind}_hot_callback/pgbench", ratio("hot, 512 by callback", "hot, pgbench"), ">=40")
        reach(f"postgres_{kind}_random_blocking/pgbench",
              ratio("random, 128 blocking", "random, pgbench"), ">=2")
        reach(f"postgres_{kind}_random_callback/pgbench",
              ratio("random, 512 by callback", "random, pgbench"), ">=4")
        reach(f"postgres_{kind}_lone_p50/pgbench", ratio("lone p50, unnamed", "lone p50, pgbench"), "<=1.4")
        reach(f"postgres_{kind}_lone_p50_named/pgbench", ratio("lone p50, named", "lone p50, pgbench"), "<=1.4")
        reach(f"postgres_{kind}_admit_all/two_row_transaction",
              ratio("two rows, admit_all of 32", "two rows, pgbench"), ">=0.5")
    reach("postgres_durable_hot_blocking/pgbench",
          figures.ratio("durable hot, 128 blocking", "durable hot, pgbench"), ">=7")
    reach("postgres_flood_decisions_a_core", figures.median("flood on 1,000 spent keys, a core"), ">=5000000")
    reach("postgres_flood_statements_a_key_and_second",
          figures.median("flood: statements a key and second"), "<=1")
    reach("postgres_askers_beside_sweep/alone", figures.median("askers beside a sweep / alone"), ">=0.8")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    figures = Figures()
    with contextlib.ExitStack() as stack:
        running = {kind: stack.enter_context(server(sys.argv[1], kind)) for kind in DURABILITIES}
        for _ in range(ROUNDS):
            for kind, one in running.items():
                measure(figures, kind, one)
            measure_flood(figures, running["unlogged"])
            measure_sweep(figures, running["async"])
    print_table(figures)
    print_reach(figures)


main()

# SPDX-License-Identifier: BSL-1.0
"""late_statement.test.py CONNINFO SQL: rows are kept for statements that were sent before the row
recovered and come to it after: they waited for a lock, or for a processor.

Such a statement is judged at its own time, at which the row still counted. Without the row it is
granted what was granted already, as this test does with a `keep` of 0.
"""

import os
import re
import subprocess
import sys
import time

LATE = 0.5  # seconds
WINDOW = 2  # seconds
KEEP = 1    # seconds that a sweep is told to keep rows
SCHEMA = f"weir_late_{os.getpid()}"
KEY = "00000000-0000-0000-0000-000000000007"
SECOND = 1_000_000_000
# Two numbers of the limit, and the cost of all that it allows at once.
LIMITS = {
    "fixed_window": (5, WINDOW * SECOND, 5),
    "sliding_window": (5, WINDOW * SECOND, 5),
    "gcra": (WINDOW * SECOND, 0, WINDOW * SECOND),
}


def sql(text):
    made = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", sys.argv[1], "-f", "-"],
                          input="SET client_min_messages = warning;\n" + text, text=True,
                          capture_output=True)
    return made.stdout.strip() if made.returncode == 0 else None


def spend_all(policy, after=0.0):
    most, length, cost = LIMITS[policy]
    return sql(f"SELECT a.granted FROM pg_sleep({after}) AS s, LATERAL {SCHEMA}.ask_{policy}("
               f"ARRAY['{KEY}']::uuid[], ARRAY[0, {most}, {length}, {cost}, 1, 0]::bigint[]) AS a")


def granted_late(policy):
    sql(f"TRUNCATE {SCHEMA}.counters; "
        f"SELECT pg_sleep({WINDOW} - extract(epoch FROM clock_timestamp()) % {WINDOW})")
    if spend_all(policy) in ("0", None):
        return "nothing in time"
    recovered = int(sql(f"SELECT recovered_at FROM {SCHEMA}.counters")) / SECOND
    now = float(sql("SELECT extract(epoch FROM clock_timestamp())"))
    sweep = (f"SELECT pg_sleep({recovered - now + 0.02});",
             f"SELECT {SCHEMA}.sweep(0, 16, {KEEP * SECOND})")
    sweeps = subprocess.Popen(["psql", "-XAtq", "-d", sys.argv[1], "-c", sweep[0], "-c", sweep[1]],
                              stdout=subprocess.DEVNULL)
    time.sleep(recovered - now - LATE / 2)
    granted = spend_all(policy, LATE)
    sweeps.wait()
    return granted


with open(sys.argv[2], encoding="utf-8") as text:
    sql(re.sub(r"\bweir\b", SCHEMA, text.read()))
try:
    wrong = {policy: granted for policy in LIMITS
             if (granted := granted_late(policy)) not in ("0", None)}  # None: it was an error
finally:
    sql(f"DROP SCHEMA {SCHEMA} CASCADE")
for policy, granted in wrong.items():
    print(f"{policy}: granted {granted}")
sys.exit(1 if wrong else 0)

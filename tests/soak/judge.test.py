# SPDX-License-Identifier: BSL-1.0
"""The judge of the soak beside small logs made by hand: it finds what is wrong in each, and nothing
in those that are right."""

import contextlib
import datetime
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge  # noqa: E402
from load import Attempt  # noqa: E402

S, MS = judge.SECOND, 1_000_000
W = 10 * S
T = 170_000_000 * W + S  # a second into a window
LIMITS = {"ip": 2, "endpoint": 5}
failures = []


def text(at):
    since = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=at // 1_000)
    return since.isoformat(timespec="milliseconds") + "Z"


def ask(nonce, at, status=202, source="a", **more):
    """From `at` to 2 ms later, and charged in between."""
    made = Attempt("submission", 0, "contact", source, str(nonce), None, at, at + 2 * MS, status,
                   *[None] * 6, False)
    if status == 202:
        made = made._replace(id=f"id-{nonce}", received=text(at + MS), replayed=False)
    if status == 503:
        made = made._replace(code="storage_unavailable")
    return made._replace(**more)


def refused(nonce, at, retry, scope="ip", **more):
    return ask(nonce, at, 429, scope=scope, retry=retry, **more)


def row(nonce, at, key=""):
    return judge.Kept(f"id-{nonce}", "contact", text(at + MS), key, str(nonce))


def finds(claim, kinds, attempts, rows, faults=()):
    report = judge.Report()
    with contextlib.redirect_stdout(None):
        judge.judge(attempts, rows, list(faults), LIMITS, W, report)
    report.found.pop("proof", None)  # these logs are small
    if set(report.found) != set(kinds.split()):
        failures.append(f"{claim}: found {dict(report.found)} in place of {kinds or 'nothing'}")


def outbox(claim, kinds, delivered, killed):
    report = judge.Report()
    with contextlib.redirect_stdout(None):
        judge.judge_outbox(delivered, [row(1, T), row(2, T)], killed, report)
    if set(report.found) != set(kinds.split()):
        failures.append(f"{claim}: found {dict(report.found)} in place of {kinds or 'nothing'}")


# Of each case exactly those kinds are found.
two, rows = [ask(1, T), ask(2, T + S)], [row(1, T), row(2, T + S)]
outage = [judge.Fault("restart fast", T, T + S)]

finds("two, and a justified refusal", "", [*two, refused(3, T + 2 * S, 7)], rows)
finds("a new window", "", [*two, ask(3, T + W), ask(4, T + W)], [*rows, row(3, T + W), row(4, T + W)])
finds("three of a source in a window", "over", [*two, ask(3, T + 2 * S)], [*rows, row(3, T + 2 * S)])
finds("three, of which one was not told", "over", [*two, ask(3, T + 3 * S, 503)],
      [*rows, row(3, T + 3 * S)], [judge.Fault("restart fast", T + 2 * S, T + 4 * S)])
finds("six of an endpoint in a window", "over", [ask(n, T + n * MS, source=str(n)) for n in range(6)],
      [row(n, T + n * MS) for n in range(6)])
finds("invalid ones count", "over", [*two, ask(3, T, 422, kind="invalid")], rows)
finds("an accepted one is lost", "kept", two, rows[:1])
finds("a refused one is kept", "kept over", [*two, refused(3, T + 2 * S, 7)],
      [*rows, row(3, T + 2 * S)])
finds("it is kept twice", "kept", two[:1], [rows[0], rows[0]._replace(id="id-9")])
finds("it has another id in the table", "kept", two[:1], [rows[0]._replace(id="id-9")])
finds("it has another time in the table", "kept", two[:1], [row(1, T + S)])
finds("nobody sent it", "kept", two, [*rows, row(7, T + W)])
finds("503 and kept, in an outage", "", [ask(1, T, 503)], rows[:1], outage)
finds("503 and not kept, in an outage", "", [ask(1, T, 503)], [], outage)
finds("503 in a calm part", "status", [ask(1, T, 503)], [])
finds("503 three seconds after an outage", "status", [ask(1, T + 4 * S, 503)], [], outage)
finds("no answer in a calm part", "status", [ask(1, T, None)], [])
finds("nobody waited for the answer", "", [ask(1, T, None, walked=True)], rows[:1])
finds("an answer of another kind", "status kept", [ask(1, T, 500)], rows[:1])
finds("an answer after six seconds", "status", [ask(1, T, end=T + 6 * S)], rows[:1], outage)
finds("refused too early", "refusal", [two[0], refused(3, T + 2 * S, 7)], rows[:1])
finds("refused before the second", "refusal", [*two, refused(3, T + S // 2, 9)], rows)
finds("refused from memory just after the window", "", [*two, refused(3, T + 9 * S + 20 * MS, 1)], rows)
finds("refused a second after the window", "refusal retry", [*two, refused(3, T + 10 * S, 1)], rows)
finds("refused since one without an answer may count", "",
      [two[0], ask(2, T, 503), refused(3, T + 5 * S, 4)], rows[:1], outage)
finds("told to come back too early", "retry", [*two, refused(3, T + 2 * S + S // 2, 6)], rows)
finds("told to come back too late", "retry", [*two, refused(3, T + 2 * S + S // 2, 9)], rows)
finds("told to come back a window later", "", [*two, refused(3, T + 2 * S, 17)], rows)

first = ask(1, T, key="k")
again = ask(1, T + S, key="k", id=first.id, received=first.received, replayed=True)
finds("a replay", "", [first, again], [row(1, T, "k")])
finds("a replay that is new", "key", [first, again._replace(replayed=False)], [row(1, T, "k")])
finds("a replay with another id", "kept", [first, again._replace(id="id-9")], [row(1, T, "k")])
finds("a replay of nothing", "key", [again._replace(start=T)], [row(1, T, "k")])
finds("one key twice in the table", "key", [first, ask(2, T + S, key="k")],
      [row(1, T, "k"), row(2, T + S, "k")])

outbox("each once", "", ["id-1", "id-2"], 0)
outbox("one is missing", "outbox", ["id-1"], 0)
outbox("one was never kept", "outbox", ["id-1", "id-2", "id-3"], 0)
outbox("one twice", "outbox", ["id-1", "id-2", "id-2"], 0)
outbox("one twice after a kill", "", ["id-1", "id-2", "id-2"], 1)

for each in failures:
    print(each)
sys.exit(1 if failures else 0)

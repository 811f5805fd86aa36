# SPDX-License-Identifier: BSL-1.0
"""The checker of the proof beside small logs made by hand: it finds what is wrong in each, and
nothing in those that are right."""

import contextlib
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check  # noqa: E402

SECOND, MS, US = 1_000_000_000, 1_000_000, 1_000
W = 1_000 * SECOND * 1_000  # the start of a window
RULES = f"""\
rule 0 fixed_window 5 {SECOND} 5 plain
rule 1 sliding_window 4 {SECOND} 4 plain
rule 2 gcra 2 {SECOND} 3 plain
rule 3 fixed_window 2 {SECOND} 2 unit
rule 4 fixed_window 9 {1_000 * SECOND} 9 ledger
rule 5 fixed_window 5 {SECOND} 5 leased
rule 6 gcra 2 {1_000 * SECOND} 2 unit
"""
failures = []


def ask(rule, cost, admitted, left, at, start=None, end=None, reset=0, basis=0, kind="ask"):
    """At W + `at`, from 1 ms before on our clock, which shows 0 then, to 1 ms after."""
    words = [kind, rule, 7, cost, admitted, basis, left, reset, W + at]
    if kind == "ask":
        words += [at - MS if start is None else start, at + MS if end is None else end]
    return " ".join(map(str, words)) + "\n"


def part(rule, cost, admitted, left, at):
    return ask(rule, cost, admitted, left, at, kind="part")


def gcra(cost, admitted, at, reset, **more):
    return ask(2, cost, admitted, (3 * SECOND // 2 - reset) * 2 // SECOND, at, reset=reset, **more)


def finds(claim, kinds, *lines):
    report = check.Report()
    log = check.Log(report)
    with contextlib.redirect_stdout(None):
        log.read(iter((RULES + "".join(lines)).splitlines(keepends=True)))
        check.judge(log, report)
    if set(report.found) != set(kinds.split()):
        failures.append(f"{claim}: found {dict(report.found)} in place of {kinds or 'nothing'}")


# Of each case exactly those kinds are found.
three, two = ask(0, 3, 1, 2, 0), ask(0, 2, 1, 0, 10 * MS)

finds("a full window and a justified refusal", "", three, two, ask(0, 1, 0, 0, 20 * MS))
finds("a new window", "", three, two, ask(0, 5, 1, 0, SECOND))
finds("more than the limit in a window", "over numbering", three, two, ask(0, 1, 1, 0, 20 * MS))
finds("the limit is passed by who was told of a negative rest", "over",
      three, two, ask(0, 1, 1, -1, 20 * MS))
finds("units told to two callers", "numbering", three, ask(0, 2, 1, 2, 10 * MS))
finds("units told to nobody", "numbering", ask(0, 2, 1, 3, 0), ask(0, 2, 1, 0, 10 * MS))
finds("one that had ended is counted after one that began then", "turn",
      ask(0, 3, 1, 0, 0), ask(0, 2, 1, 3, 10 * MS))
finds("the same, but both were under way at once", "",
      ask(0, 3, 1, 0, 0, end=12 * MS), ask(0, 2, 1, 3, 10 * MS))
finds("refused with room for it", "refusal", three, ask(0, 2, 0, 2, 10 * MS))
finds("refused on a count that never was", "refusal", three, ask(0, 3, 0, 1, 10 * MS))
finds("refused because of one that began later", "refusal",
      three, ask(0, 3, 0, 0, 5 * MS), two)
finds("refused on a count without one that had ended", "refusal",
      three, two, ask(0, 5, 0, 2, 20 * MS))
finds("a remembered refusal on such a count", "", three, two, ask(0, 5, 0, 2, 20 * MS, basis=20))
finds("refused in a window that nobody spent in", "refusal", three, ask(0, 5, 0, 0, SECOND))
finds("an ask without an answer may have been counted", "",
      *[ask(3, 1, 1, 1, n * SECOND) for n in range(99)],
      ask(0, 1, 0, 0, 0, basis=50), ask(0, 3, 1, 1, 10 * MS))
finds("an ask without an answer lets nobody pass the limit", "over numbering",
      *[ask(3, 1, 1, 1, n * SECOND) for n in range(99)],
      ask(0, 1, 0, 0, 0, basis=50), three, two, ask(0, 1, 1, 0, 20 * MS))
finds("nothing was asked", "proof")
finds("too many asks had no answer", "proof", three, ask(1, 1, 0, 0, 0, basis=50))

# Four in the first window; of these 2 are still there at 1.5 s, rounded up to 3 a tick before.
four = ask(1, 4, 1, 0, SECOND - MS)
finds("sliding: what the estimate leaves", "", four, ask(1, 2, 1, 0, SECOND * 3 // 2))
finds("sliding: a microsecond earlier", "over", four, ask(1, 2, 1, -1, SECOND * 3 // 2 - US))
finds("sliding: the same within that microsecond", "over", four, ask(1, 2, 1, -1, SECOND * 3 // 2 - 1))
finds("sliding: at one instant the order is free", "", ask(1, 2, 1, 1, 0, end=3 * MS), ask(1, 1, 1, 3, 0),
      ask(1, 1, 1, 0, 0, end=3 * MS))
finds("sliding: more than the limit in a window", "over numbering",
      ask(1, 3, 1, 1, 0), ask(1, 3, 1, 1, 10 * MS))
finds("sliding: 2 limit - 1 in a span", "",
      ask(1, 4, 1, 0, SECOND - US), ask(1, 3, 1, 0, 2 * SECOND - US - US))
finds("sliding: 2 limit in a span", "over",
      ask(1, 4, 1, 0, SECOND - US), ask(1, 4, 1, -1, 2 * SECOND - US - US))
finds("sliding: units told to two callers", "numbering", ask(1, 2, 1, 2, 0), ask(1, 2, 1, 2, 10 * MS))
finds("sliding: refused with room for it", "refusal", four, ask(1, 2, 0, 1, SECOND * 3 // 2))
finds("sliding: refused for what the window before leaves", "", four, ask(1, 3, 0, 2, SECOND * 3 // 2))
finds("sliding: told of more room than there was", "refusal", four, ask(1, 4, 0, 3, SECOND * 3 // 2))

# An interval of 500 ms, a burst of 3.
burst = gcra(3, 1, 0, SECOND * 3 // 2)
finds("gcra: a unit each interval", "", burst, gcra(1, 1, SECOND // 2, SECOND * 3 // 2))
finds("gcra: a nanosecond early", "over", burst, gcra(1, 1, SECOND // 2 - 1, SECOND * 3 // 2 + 1))
finds("gcra: over the burst at one instant", "over", burst, gcra(1, 1, 0, SECOND * 2, end=3 * MS))
finds("gcra: over in a span, though each step fits", "over numbering",
      burst, gcra(2, 1, SECOND // 2, SECOND), gcra(1, 1, SECOND, SECOND))
finds("gcra: locked in another order than asked", "",
      gcra(1, 1, 10 * MS, SECOND // 2, end=40 * MS), gcra(1, 1, 5 * MS, SECOND + 5 * MS, end=40 * MS))
finds("gcra: units told to two callers", "numbering",
      gcra(1, 1, 0, SECOND // 2), gcra(1, 1, 10 * MS, SECOND // 2))
finds("gcra: refused too early to fit", "", burst, gcra(1, 0, SECOND // 2 - 1, SECOND + 1))
finds("gcra: refused when it fitted", "refusal", burst, gcra(1, 0, SECOND // 2, SECOND))
finds("gcra: refused on an instant that never was", "refusal", burst, gcra(3, 0, 10 * MS, SECOND))

unit = [ask(3, 1, 1, 1, 0), ask(3, 1, 1, 0, 10 * MS), ask(3, 1, 0, 0, 20 * MS)]
finds("as many as fit", "", *unit)
finds("less than was asked", "sum refusal", unit[0], ask(3, 1, 0, 0, 20 * MS))
finds("O31: more than the burst at one moment", "over numbering sum",
      *[ask(6, 1, 1, 1, 0, reset=500 * SECOND) for _ in range(3)])

finds("a set in which all fits", "", "set 2 1 0 -1000000 1000000\n", part(0, 3, 1, 2, 0), part(1, 4, 1, 0, 0))
finds("a refused set takes nothing", "", four,
      f"set 2 0 1 {SECOND} {SECOND + 2 * MS}\n", part(0, 3, 1, 5, SECOND + MS), part(1, 4, 0, 0, SECOND + MS),
      ask(0, 3, 1, 2, SECOND + 10 * MS))
finds("a refused set takes a part", "numbering", four,
      f"set 2 0 1 {SECOND} {SECOND + 2 * MS}\n", part(0, 3, 1, 2, SECOND + MS), part(1, 4, 0, 0, SECOND + MS),
      ask(0, 1, 1, 1, SECOND + 10 * MS))
finds("a set is admitted although a part refused", "set", four,
      f"set 2 1 0 {SECOND - MS} {SECOND + MS}\n", part(0, 3, 1, 2, SECOND), part(1, 0, 0, 0, SECOND))
finds("a set names nobody who refused", "set", four,
      f"set 2 0 0 {SECOND} {SECOND + 2 * MS}\n", part(0, 3, 1, 5, SECOND + MS), part(1, 4, 0, 0, SECOND + MS))
finds("a chain ends with the first refusal", "", four, "chain 1 0\n", ask(1, 4, 0, 0, SECOND + MS))
finds("a chain goes on after a refusal", "set", four,
      "chain 2 0\n", ask(1, 4, 0, 0, SECOND + MS), ask(0, 1, 1, 4, SECOND + MS))

# A ledger of 9: 6 taken, of which 4 come back later, and 1 charged.
six, back = ask(4, 6, 1, 3, 0), f"back 4 7 4 {10 * MS} {12 * MS}\n"
charge = f"charge 4 7 1 {10 * MS} {12 * MS}\n"
finds("a ledger that adds up", "", six, back, charge, ask(4, 3, 1, 3, 20 * MS), "look 4 7 3 0\n")
finds("a ledger that does not", "ledger", six, back, charge, "look 4 7 7 0\n")
finds("what is given back can be taken before that was told", "", six, back, ask(4, 5, 1, 2, 11 * MS))
finds("what is given back can not be taken before it was begun", "ledger",
      six, back, ask(4, 5, 1, 2, 8 * MS))
finds("what is given back is refused", "ledger", six, back, ask(4, 5, 0, 3, 20 * MS))
finds("a give-back that may have had no answer", "",
      six, f"back 4 7 4 {10 * MS} {3 * SECOND}\n", "look 4 7 3 0\n")

ahead = [ask(5, 1, 1, 0, 10 * MS * n, basis=10 if n else 0) for n in range(5)]
finds("units taken ahead are all used", "", *ahead)
finds("more units than were taken ahead are used", "over", *ahead, ask(5, 1, 1, 0, 60 * MS, basis=10))

finds("an instant before the question", "clock", three, ask(0, 2, 1, 0, 900 * MS, start=SECOND, end=2 * SECOND))

for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)

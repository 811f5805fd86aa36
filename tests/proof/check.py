# SPDX-License-Identifier: BSL-1.0
"""check.py LOG…: judges what the askers of tests/proof/run were told (log.hpp says how it is written).

Written from the definitions of the policies and sharing nothing with the library. An ask is judged at
the instant in its answer, never by when it was sent or answered. For each key of each limiter:

over      More was admitted than the policy allows. fixed_window: the cost in a window [kW, (k+1)W) is at
          most the limit. sliding_window: at each admission, cost of its window so far + cost of the
          window before x share of it that is left <= limit, time in whole microseconds; and at most
          2 limit - 1 in any [t, t + W). gcra: in any [a, b] the cost x interval is at most
          burst x interval + b - a. Admissions are taken in the order of their instants. Where the
          database locked the row in another order, or several have one instant, this is still what
          must hold: of those up to an instant the last to be locked met all others.
numbering Each unit is told to one caller. The units left after an admission say which ones it got:
          those of a window, put in order, begin at 0 and leave no gap (gcra: each begins where the
          one before ended, or at its own instant). A lost update shows here before a limit is passed.
turn      An ask that had ended before another one began was counted before it.
refusal   Who was refused must not have fitted: the count that the answer tells is one that was
          reached by those who may have come before, and the cost did not fit on it. A sliding count
          is known up to those under way at the time. A remembered refusal may tell of an older count.
sum       Where all cost 1: what was admitted is the limit, or all that was asked for.
set       A set is admitted if all its parts are, and if one refused it names that one. That nothing is
          spent then, and all otherwise, the numbering shows. A chain ends with the first refusal.
ledger    Each count told lies between what had surely and what had possibly been taken, charged and
          given back at the time; in the end it is the sum.
clock     The instant of an answer lies between question and answer (one server, one offset).

Units taken ahead ("leased") may be wasted, so only `over` holds there. An ask without an answer may
have been counted or not: of its key only `over` is judged. More than one in a hundred of these, or an
empty log, proves nothing and fails.
"""

import array
import bisect
import collections
import itertools
import sys

COUNTED, LEASED, REMEMBERED, LOCAL, AWAY = 0, 10, 20, 40, 50
SLACK = 50_000_000        # ns, by which a clock may be stepped during a run
DEADLINE = 2_000_000_000  # ns: what takes so long may have had no answer

Rule = collections.namedtuple("Rule", "policy limit window burst kind")
# `judged` is the instant that the server told.
Spent = collections.namedtuple("Spent", "cost left reset judged start end basis")
FIELDS = len(Spent._fields)


class Counter:
    """All that was logged of one key of one limiter."""

    __slots__ = ("spent", "refused", "charges", "backs", "looks", "lost")

    def __init__(self):
        self.spent, self.refused = [], array.array("q")  # refusals are many
        self.charges, self.backs, self.looks, self.lost = [], [], [], 0

    def refusals(self):
        return itertools.starmap(Spent, itertools.zip_longest(*[iter(self.refused)] * FIELDS))


class Report:
    KINDS = "over numbering turn refusal sum set ledger clock proof".split()

    def __init__(self):
        self.found = collections.Counter()
        self.seen = collections.Counter()

    def wrong(self, kind, *what):
        self.found[kind] += 1
        if self.found[kind] <= 5:
            print(f"{kind}:", *what)


# -- reading ---------------------------------------------------------------------------------------


class Log:
    def __init__(self, report):
        self.report, self.rules = report, {}
        self.counters = collections.defaultdict(Counter)
        self.earliest, self.latest = -(1 << 63), 1 << 63  # server's clock - ours, ns

    def read(self, lines):
        for line in lines:
            word = line.split()
            if word[0] == "ask":
                self.ask(list(map(int, word[1:])))
            elif word[0] == "set":
                self.set(list(map(int, word[1:])), lines)
            elif word[0] == "chain":
                self.chain(list(map(int, word[1:])), lines)
            elif word[0] == "rule":
                self.rules[int(word[1])] = Rule(word[2], *map(int, word[3:6]), word[6])
            elif word[0] in ("back", "charge"):
                self.move(word[0], *map(int, word[1:]))
            elif word[0] == "look":
                self.counters[int(word[1]), int(word[2])].looks.append(tuple(map(int, word[3:])))
            else:
                raise ValueError(f"no such line: {line}")

    def ask(self, number):
        rule, key, cost, admitted, basis, left, reset, judged, start, end = number
        self.keep(self.counters[rule, key], admitted, cost, left, reset, judged, start, end, basis)

    def keep(self, of, admitted, cost, left, reset, judged, start, end, basis):
        seen = self.report.seen
        seen["decisions"] += 1
        if basis >= LOCAL:
            of.lost += 1
            seen["unanswered"] += 1
            return
        if basis == COUNTED:
            self.earliest = max(self.earliest, judged - end)
            self.latest = min(self.latest, judged - start)
        if admitted:
            seen["admitted"] += 1
            seen["leased"] += basis == LEASED
            of.spent.append(Spent(cost, left, reset, judged, start, end, basis))
        else:
            seen["remembered" if basis == REMEMBERED else "refused"] += 1
            of.refused.extend((cost, left, reset, judged, start, end, basis))

    def move(self, kind, rule, key, units, start, end):
        of = self.counters[rule, key]
        (of.backs if kind == "back" else of.charges).append((units, start, end))
        of.lost += end - start >= DEADLINE

    def chain(self, number, lines):
        count, admitted = number
        asks = [list(map(int, next(lines).split()[1:])) for _ in range(count)]
        said = [ask[3] for ask in asks]
        if admitted != all(said) or not all(said[:-1]):
            self.report.wrong("set", "a chain went on after a refusal", number, asks)
        for ask in asks:
            self.ask(ask)

    def set(self, number, lines):
        count, admitted, refusers, start, end = number
        parts = [list(map(int, next(lines).split()[1:])) for _ in range(count)]
        self.report.seen["sets"] += 1
        said = [part[3] for part in parts]
        if admitted != all(said) or refusers != said.count(0):
            self.report.wrong("set", "the parts do not say what the set says", number, parts)
        for rule, key, cost, fits, basis, left, reset, judged in parts:
            of = self.counters[rule, key]
            if admitted or not fits:
                self.keep(of, admitted, cost, left, reset, judged, start, end, basis)
            else:
                self.report.seen["undone"] += 1  # it would have fitted; nothing was taken

    def judge_clock(self):
        if self.earliest > self.latest + SLACK:
            self.report.wrong("clock", f"answers tell instants up to {self.earliest - self.latest} ns "
                                       "before the question or after the answer")


# -- what the policies have in common --------------------------------------------------------------


class Reached:
    """The counts that admissions made in one window, or of one gcra key, in the order of making."""

    def __init__(self, steps):  # (before, after, Spent), sorted
        self.after = [after for _, after, _ in steps]
        self.latest_start = list(itertools.accumulate((one.start for _, _, one in steps), max))
        ends = itertools.accumulate((one.end for _, _, one in reversed(steps)), min)
        self.earliest_end = list(ends)[::-1]

    def why_not(self, count, first, asked):
        """What speaks against `asked` having met `count`; `first` is the count before all others."""
        met = 0 if count == first else bisect.bisect_left(self.after, count) + 1
        if met and (met > len(self.after) or self.after[met - 1] != count):
            return "was told a count that never was"
        if met and self.latest_start[met - 1] > asked.end:
            return "was told of an ask that came later"
        if asked.basis == COUNTED and met < len(self.after) and self.earliest_end[met] < asked.start:
            return "was not told of an ask that had ended before"
        return None


class Flow:
    """How much had surely, and had possibly, been moved at some time."""

    def __init__(self, moves):  # (units, start, end)
        self.starts, self.started = self.sums((start, units) for units, start, _ in moves)
        self.ends, self.ended = self.sums((end, units) for units, _, end in moves)

    @staticmethod
    def sums(moves):
        moves = sorted(moves)
        return [at for at, _ in moves], [0, *itertools.accumulate(units for _, units in moves)]

    def most(self, until):
        return self.started[bisect.bisect_right(self.starts, until)]

    def least(self, before):
        return self.ended[bisect.bisect_left(self.ends, before)]


def judge_turns(name, steps, report):
    """`steps`: Spent in the order of counting."""
    latest = 0
    for one in steps:
        if one.end < latest:
            report.wrong("turn", *name, "counted after an ask that began when it had ended:", one)
        latest = max(latest, one.start)


def by_window(spent, window):
    windows = collections.defaultdict(list)
    for one in spent:
        windows[one.judged // window].append(one)
    return windows


def judge_numbers(name, steps, of, report):
    """`steps`: (before, after, Spent) of a window, sorted. A gap may be an ask without an answer."""
    last = 0
    for before, after, one in steps:
        if before < last or (before > last and not of.lost):
            report.wrong("numbering", *name, f"units {before}…{after} told, {last} were taken:", one)
        last = after


# -- fixed_window ----------------------------------------------------------------------------------


def judge_fixed(name, rule, of, report):
    windows, reached, order = by_window(of.spent, rule.window), {}, []
    for number, spent in sorted(windows.items()):
        total = sum(one.cost for one in spent)
        report.seen["windows"] += 1
        report.seen["full"] += total == rule.limit
        if total > rule.limit:
            report.wrong("over", *name, f"{total} of {rule.limit} in window {number}")
        steps = sorted((rule.limit - one.left - one.cost, rule.limit - one.left, one) for one in spent)
        reached[number] = Reached(steps)
        order += [one for _, _, one in steps]
        if rule.kind != "leased":
            judge_numbers((*name, f"window {number}"), steps, of, report)
    if rule.kind == "leased":
        return
    judge_turns(name, order, report)
    if not of.lost:
        judge_fixed_refusals(name, rule, of, reached, report)


def judge_fixed_refusals(name, rule, of, reached, report):
    none, asked = Reached([]), collections.Counter(one.judged // rule.window for one in of.spent)
    admitted = collections.Counter(asked)
    for one in of.refusals():
        number = one.judged // rule.window
        asked[number] += 1
        why = reached.get(number, none).why_not(rule.limit - one.left, 0, one)
        if why is None and one.cost <= one.left:
            why = "was refused what fits into what is left"
        if why:
            report.wrong("refusal", *name, f"window {number}: {why}:", one)
    if rule.kind == "unit":
        for number, count in asked.items():
            judge_sum((*name, f"window {number}"), admitted[number], count, rule.limit, report)


def judge_sum(name, admitted, asked, most, report):
    report.seen["sums"] += asked >= most
    if admitted != min(most, asked):
        report.wrong("sum", *name, f"{admitted} admitted of {asked} asks under a limit of {most}")


# -- sliding_window --------------------------------------------------------------------------------


class Sliding:
    """The two counters of each window, from what was admitted."""

    def __init__(self, rule, spent):
        self.rule, self.windows = rule, by_window(spent, rule.window)
        self.ticks = rule.window // 1000
        self.total = {n: sum(one.cost for one in spent) for n, spent in self.windows.items()}

    def still_here(self, before, judged):
        """The share of `before` that lies in the trailing window, rounded up."""
        return -(-before * (self.ticks - judged % self.rule.window // 1000) // self.ticks)

    def before(self, number):
        return self.total.get(number - 1, 0)


def judge_sliding(name, rule, of, report):
    seen, order = Sliding(rule, of.spent), []
    for number, spent in sorted(seen.windows.items()):
        report.seen["windows"] += 1
        report.seen["full"] += seen.total[number] + seen.before(number) >= rule.limit
        judge_estimates((*name, f"window {number}"), seen, number, report)
        steps = []
        for one in spent:
            taken = rule.limit - one.left - seen.still_here(seen.before(number), one.judged)
            steps.append((taken - one.cost, taken, one))
        steps.sort()
        order += [one for _, _, one in steps]
        # One that was not told of may be in the window before.
        if rule.kind != "leased" and not of.lost:
            judge_numbers((*name, f"window {number}"), steps, of, report)
    judge_spans(name, rule, of, report)
    if rule.kind != "leased" and not of.lost:
        judge_turns(name, order, report)
        judge_sliding_refusals(name, seen, of, report)


def judge_estimates(name, seen, number, report):
    taken = 0
    for judged, some in itertools.groupby(sorted(seen.windows[number], key=lambda one: one.judged),
                                          key=lambda one: one.judged):
        taken += sum(one.cost for one in some)
        estimate = taken + seen.still_here(seen.before(number), judged)
        if estimate > seen.rule.limit:
            report.wrong("over", *name, f"estimate {estimate} of {seen.rule.limit} at {judged}")


def judge_spans(name, rule, of, report):
    spent, first, inside = sorted(of.spent, key=lambda one: one.judged), 0, 0
    for one in spent:
        inside += one.cost
        while spent[first].judged <= one.judged - rule.window:
            inside -= spent[first].cost
            first += 1
        if inside > 2 * rule.limit - 1:
            report.wrong("over", *name, f"{inside} of 2 x {rule.limit} - 1 up to {one.judged}")


def judge_sliding_refusals(name, seen, of, report):
    limit, none = seen.rule.limit, Flow([])
    flows = {number: Flow([(one.cost, one.start, one.end) for one in spent])
             for number, spent in seen.windows.items()}
    for one in of.refusals():
        number = one.judged // seen.rule.window
        now, before = flows.get(number, none), flows.get(number - 1, none)

        def room(taken, taken_before):
            return max(0, limit - taken - seen.still_here(taken_before, one.judged))

        least = room(now.most(one.end), before.most(one.end))
        most = room(now.least(one.start), before.least(one.start))
        if one.cost <= one.left or one.left < least or (one.basis == COUNTED and one.left > most):
            report.wrong("refusal", *name, f"refused with {least}…{most} left:", one)


# -- gcra ------------------------------------------------------------------------------------------


def judge_gcra(name, rule, of, report):
    interval = -(-rule.window // rule.limit)
    report.seen["buckets"] += 1
    full_at = 0
    for one in sorted(of.spent, key=lambda one: one.judged):
        full_at = max(full_at, one.judged) + one.cost * interval
        if full_at > one.judged + rule.burst * interval:
            report.wrong("over", *name, f"by {full_at - one.judged - rule.burst * interval} ns:", one)
            full_at = one.judged + rule.burst * interval

    steps = sorted((one.judged + one.reset - one.cost * interval, one.judged + one.reset, one)
                   for one in of.spent)
    last = 0
    for before, after, one in steps:
        first = max(last, one.judged)
        if before < first or (before > first and not of.lost):
            report.wrong("numbering", *name, f"began {before - first} ns after where it should:", one)
        last = after
    judge_turns(name, [one for _, _, one in steps], report)
    if not of.lost:
        judge_gcra_refusals(name, rule, interval, of, Reached(steps), report)


def judge_gcra_refusals(name, rule, interval, of, reached, report):
    count = len(of.spent)
    for one in of.refusals():
        count += 1
        why = reached.why_not(one.judged + one.reset, None, one)
        if why is None and one.reset + one.cost * interval <= rule.burst * interval:
            why = "was refused what fits"
        if why:
            report.wrong("refusal", *name, why, one)
    if rule.kind == "unit":
        judge_sum(name, len(of.spent), count, rule.burst, report)


# -- ledgers ---------------------------------------------------------------------------------------


def judge_ledger(name, rule, of, report):
    """All within one window, and in a gcra with intervals of weeks. What came back to a gcra is back at
    the instant of the last ask that found it full: one judged before that finds one unit less."""
    if of.lost:
        return
    spent = Flow([(one.cost, one.start, one.end) for one in of.spent])
    charged, back = Flow(of.charges), Flow(of.backs)
    rounding = rule.policy == "gcra"

    for one in of.spent:
        told = rule.limit - one.left
        least = spent.least(one.start) + charged.least(one.start) - back.most(one.end) + one.cost
        most = spent.most(one.end) + charged.most(one.end) - back.least(one.start) + rounding
        if not least <= told <= most:
            report.wrong("ledger", *name, f"{told} told, {least}…{most} can be:", one)
    for one in of.refusals():
        told = rule.limit - one.left
        most = spent.most(one.end) + charged.most(one.end) + rounding
        least = 0
        if one.basis == COUNTED:
            most -= back.least(one.start)
            least = spent.least(one.start) + charged.least(one.start) - back.most(one.end)
        if one.cost <= one.left or told > most or (one.left > 0 and told < least):
            report.wrong("ledger", *name, f"{told} told to who was refused, {least}…{most} can be:", one)

    total = spent.started[-1] + charged.started[-1] - back.started[-1]
    for left, basis in of.looks:
        report.seen["ledgers"] += 1
        if basis == COUNTED and left != max(0, rule.limit - total):
            report.wrong("ledger", *name, f"{left} left in the end, {total} of {rule.limit} taken")


# --------------------------------------------------------------------------------------------------


def judge(log, report):
    judges = {"fixed_window": judge_fixed, "sliding_window": judge_sliding, "gcra": judge_gcra}
    for (number, key), of in sorted(log.counters.items()):
        rule = log.rules[number]
        name = (f"limiter {number} ({rule.policy})", f"key {key}")
        report.seen["keys"] += 1
        judged_by = judge_ledger if rule.kind == "ledger" else judges[rule.policy]
        judged_by(name, rule, of, report)
    log.judge_clock()
    seen = report.seen
    if seen["admitted"] == 0 or 100 * seen["unanswered"] > seen["decisions"]:
        report.wrong("proof", f"{seen['decisions']} decisions, {seen['admitted']} admitted, "
                              f"{seen['unanswered']} unanswered: that proves nothing")


def summary(report):
    seen, found = report.seen, report.found
    return (f"{seen['decisions']} decisions: {seen['admitted']} admitted ({seen['leased']} leased), "
            f"{seen['refused']} refused, {seen['remembered']} remembered, {seen['unanswered']} "
            f"unanswered; {seen['sets']} sets, {seen['undone']} parts undone; {seen['keys']} keys, "
            f"{seen['windows']} windows judged ({seen['full']} full), {seen['buckets']} buckets, "
            f"{seen['sums']} exact sums, {seen['ledgers']} ledgers; {found.total()} violations"
            + "".join(f", {kind} {found[kind]}" for kind in Report.KINDS if found[kind]))


def check(paths):
    report = Report()
    log = Log(report)
    for path in paths:
        with open(path, encoding="ascii") as lines:
            log.read(lines)
    judge(log, report)
    return report


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    made = check(sys.argv[1:])
    print(summary(made))
    sys.exit(1 if made.found else 0)

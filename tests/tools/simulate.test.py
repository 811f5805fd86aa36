# SPDX-License-Identifier: BSL-1.0
"""weir-simulate as a process, beside a model of its own: simulate.test.py PATH-OF-THE-PROGRAM"""

import random
import subprocess
import sys

MS = 1_000_000  # nanoseconds
HOUR = 3_600_000 * MS
LAST = (2**63 - 1) // MS
failures = []


def run(arguments, text):
    done = subprocess.run([sys.argv[1], *arguments], input=text.encode(), capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check(claim, held, seen):
    if not held:
        failures.append(f"{claim}: {seen}")


class Windowed:
    """fixed_window and sliding_window: a list of (window, units) that were admitted."""

    def __init__(self, limit, window, sliding):
        self.limit, self.window, self.sliding, self.log = limit, window, sliding, []

    def seen(self, at):
        if self.log and self.log[-1][0] * self.window - at > max(self.window, HOUR):
            return []
        return self.log

    def fits(self, log, cost, at):
        number = at // self.window
        if log and log[-1][0] > number:
            number, at = log[-1][0], log[-1][0] * self.window
        units = {number: 0, number - 1: 0}
        for window, taken in log:
            if window in units:
                units[window] += taken
        left = self.window - (at - number * self.window) // 1000 * 1000
        before = units[number - 1] * left if self.sliding else 0
        return (units[number] + cost) * self.window + before <= self.limit * self.window

    def take(self, log, cost, at):
        number = max([at // self.window] + [window for window, _ in log[-1:]])
        self.log = [one for one in log if one[0] >= number - 1] + [(number, cost)]

    def all_back(self, log, at):
        return (log[-1][0] + 2) * self.window if log else at

    def most(self):
        return self.limit


class Bucket:
    """gcra, and at_most through it: the instant at which all is back."""

    def __init__(self, limit, window, burst):
        self.limit, self.burst = limit, burst if limit else 0
        self.interval = -(-window // limit) if limit else 0
        self.log = -(2**63)

    def seen(self, at):
        return -(2**63) if self.log - at > self.burst * self.interval + HOUR else self.log

    def fits(self, full_at, cost, at):
        return self.limit > 0 and max(at, full_at) + cost * self.interval - at <= self.burst * self.interval

    def take(self, full_at, cost, at):
        self.log = max(at, full_at) + cost * self.interval

    def all_back(self, full_at, at):
        return max(full_at, at)

    def most(self):
        return self.burst


def last_true(start, end, holds):
    while start < end:
        middle = (start + end + 1) // 2
        start, end = (middle, end) if holds(middle) else (start, middle - 1)
    return start


def answer(model, at, cost):
    log, wanted = model.seen(at), max(cost, 1)
    admitted = model.fits(log, wanted, at)
    if admitted and cost > 0:
        model.take(log, cost, at)
        log = model.seen(at)
    left = last_true(0, model.most(), lambda units: model.fits(log, units, at))
    if admitted:
        return f"admitted {left} -"
    if wanted > model.most():
        return f"refused {left} none"
    horizon = model.all_back(log, at) - at
    wait = last_true(0, horizon, lambda by: not model.fits(log, wanted, at + by)) + 1
    return f"refused {left} {-(-wait // MS)}"


def models(dice):
    window, limit = dice.choice([100, 1000, 7000, 60_000]), dice.choice([0, 1, 2, 3, 5, 10, 100])
    burst = dice.randint(1, 12)
    text = {100: "100ms", 1000: "1s", 7000: "7000ms", 60_000: "1m"}[window]
    ns, set_limit = window * MS, [f"limit={limit}", f"window={text}"]
    spread = min(burst, max(limit, 1))
    return [
        (["fixed_window", *set_limit], lambda: Windowed(limit, ns, False)),
        (["sliding_window", *set_limit], lambda: Windowed(limit, ns, True)),
        (["gcra", *set_limit], lambda: Bucket(limit, ns, limit)),
        (["gcra", *set_limit, f"burst={burst}"], lambda: Bucket(limit, ns, burst)),
        (["at_most", f"limit={max(limit, 1)}", f"window={text}", f"burst={spread}"],
         lambda: Bucket(max(limit, 1) - spread + 1, ns, spread)),
    ], window, limit


def random_log(dice, window, limit):
    at, lines = dice.choice([0, 1_767_225_600_000]), []
    for _ in range(300):
        move = dice.random()
        if move < 0.5:
            at += dice.randint(0, window // 4)
        elif move < 0.6:
            at += window - at % window + dice.randint(-1, 1)
        elif move < 0.65:
            at += dice.randint(0, 3 * window)
        elif move < 0.7:
            at -= dice.randint(0, 2 * window)
        elif move < 0.71:
            at -= dice.randint(3_500_000, 3_700_000 + window)
        elif move < 0.72:
            at += dice.randint(0, 86_400_000)
        at = max(at, 0)
        cost = dice.choice([1] * 12 + [0, 2, 3, limit, limit + 1, 2**64 - 1])
        lines.append((at, dice.choice("abc") * dice.randint(1, 3), cost))
    return lines


def random_logs_are_decided_as_the_model_does():
    for seed in range(60):
        dice = random.Random(seed)
        cases, window, limit = models(dice)
        for arguments, make in cases:
            log, clients = random_log(dice, window, limit), {}
            expected = [f"{at} {who} {answer(clients.setdefault(who, make()), at * MS, cost)}" for at, who, cost in log]
            text = "".join(f"{at} {who}\n" if cost == 1 else f"{at} {who} {cost}\n" for at, who, cost in log)
            code, out, err = run(arguments, text)
            got = out.splitlines()
            wrong = [pair for pair in zip(expected, got) if pair[0] != pair[1]][:1]
            check(f"seed {seed} {arguments}", code == 0 and err == "" and got == expected, (code, wrong, err))


def many_clients_are_each_counted_exactly():
    log = [(1000 + i // 1000, f"client{i % 20_000}") for i in range(60_000)]
    code, out, _ = run(["fixed_window", "limit=2", "window=1h"], "".join(f"{at} {who}\n" for at, who in log))
    verdicts = [line.split()[2] for line in out.splitlines()]
    check("twice each, then refused", code == 0 and verdicts == ["admitted"] * 40_000 + ["refused"] * 20_000, code)


def the_form_of_lines():
    limit = ["fixed_window", "limit=2", "window=1m"]
    for text, expected in (
        ("", ""),
        ("0 a", "0 a admitted 1 -\n"),
        ("  0\ta \r\n007 a\n", "0 a admitted 1 -\n007 a admitted 0 -\n"),
        ("0 a 2\n1 a 0\n", "0 a admitted 0 -\n1 a refused 0 59999\n"),
        ("5 \u00fc! 1\n", "5 \u00fc! admitted 1 -\n"),
        (f"{LAST} a\n", f"{LAST} a admitted 1 -\n"),
    ):
        code, out, err = run(limit, text)
        check(f"line {text!r}", (code, out, err) == (0, expected, ""), (code, out, err))


def bad_lines_are_named_by_line_and_column():
    limit = ["fixed_window", "limit=2", "window=1m"]
    for text, place in (
        ("0\n", "line 1, column 2"),
        ("\n", "line 1, column 1"),
        ("0 a\n\n1 a\n", "line 2, column 1"),
        ("x a\n", "line 1, column 1"),
        ("-1 a\n", "line 1, column 1"),
        ("+1 a\n", "line 1, column 1"),
        ("1.5 a\n", "line 1, column 1"),
        (f"{LAST + 1} a\n", "line 1, column 1"),
        ("99999999999999999999999 a\n", "line 1, column 1"),
        ("0 a\n  0 a -1\n", "line 2, column 7"),
        ("0 a 1x\n", "line 1, column 5"),
        (f"0 a {2**64}\n", "line 1, column 5"),
        ("0 a 1 2\n", "line 1, column 7"),
    ):
        code, out, err = run(limit, text)
        check(f"bad line {text!r}", code == 2 and out == "" and f"{place}: " in err, (code, out, err))
    _, _, err = run(limit, f"{LAST + 1} a\n")
    check("the last instant is told", str(LAST) in err and "later" in err, err)


def bad_settings_are_named():
    for arguments, said in (
        ([], "policy"),
        (["leaky"], "argument 1, column 1"),
        (["fixed_window"], "limit is wanted"),
        (["fixed_window", "limit=1"], "window is wanted"),
        (["fixed_window", "window=1s"], "limit is wanted"),
        (["fixed_window", "limit=1", "window=1s", "burst=2"], "argument 4, column 1"),
        (["gcra", "limit=1", "window=1s", "limit=1"], "set twice"),
        (["gcra", "limit=x", "window=1s"], "argument 2, column 7"),
        (["gcra", "limit=-1", "window=1s"], "argument 2, column 7"),
        (["gcra", "limit=", "window=1s"], "argument 2, column 7"),
        (["gcra", "limit", "window=1s"], "argument 2, column 6"),
        (["gcra", "limit=1", "window=1s", "burst=0"], "burst"),
        (["at_most", "limit=5", "window=1s", "burst=6"], "burst"),
        (["sliding_window", f"limit={2**33}", "window=1ms"], str(2**33 - 1)),
        (["sliding_window", f"limit={2**62}", "window=1h"], "limit"),
    ):
        code, out, err = run(arguments, "")
        check(f"setting {arguments}", code == 2 and out == "" and said in err, (code, out, err))


def o27_durations_are_read_strictly():
    for text, ms in (("1m", 60_000), ("1ms", 1), ("1h30m", 5_400_000), ("90s", 90_000), ("1h1m1s1ms", 3_661_001)):
        code, out, err = run(["fixed_window", "limit=1", f"window={text}"], "0 a\n0 a\n")
        check(f"O27 {text}", code == 0 and out.endswith(f"0 a refused 0 {ms}\n"), (code, out, err))
    for text in ("1h30", "10mb", "1 month", "30x", "10", "", "-1s", "1.5h", "1e9s", " 5s", "5s ", "5S", "0s", "1m1h",
                 "1s1s", "s", "+1s", "9999999999999999999s", "2562048h", "2562047h2562047h", "9223372036855ms"):
        code, out, err = run(["fixed_window", "limit=1", f"window={text}"], "0 a\n")
        check(f"O27 {text!r}", code == 2 and out == "" and "window" in err or f'"{text}"' in err, (code, out, err))


def help_is_given():
    code, out, err = run(["--help"], "")
    check("--help", code == 0 and out.startswith("usage: weir-simulate") and err == "", (code, out, err))


random_logs_are_decided_as_the_model_does()
many_clients_are_each_counted_exactly()
the_form_of_lines()
bad_lines_are_named_by_line_and_column()
bad_settings_are_named()
o27_durations_are_read_strictly()
help_is_given()
for failure in failures[:20]:
    print(failure)
sys.exit(1 if failures else 0)

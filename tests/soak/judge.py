# SPDX-License-Identifier: BSL-1.0
"""Judges what the clients of tests/soak/run were told, beside what is in the tables afterwards.

Written from the README of weir-forms, and sharing nothing with it:

status   Each is one that the request can have. In calm parts, from two seconds after a fault to the next
         one, none is 503 or missing. None took longer than the limits' and the database's patience.
kept     What was answered with 202 is in the table, once, under the id that was told. What was refused
         is not. What was not answered, or with 503, is there once or not at all.
key      One key of an endpoint is one submission: all 202 tell its id, and at most one tells it first.
over     Per source and per endpoint no window holds more than its limit. A submission is charged to its
         endpoint at received_at, the clock of the counters; to its source between its start and that;
         what else was let through, between question and answer. What straddles an edge is left out.
         weir-forms refuses while it cannot count, so this holds in outages too.
refusal  Who was refused by a limit came after as many others in the window as the limit says, those
         counted whose answer was lost. A remembered refusal may tell of a window that has just ended:
         for no longer than the answer took that is remembered.
retry    Retry-After ends with the window that refused, or a whole number of windows later: those
         who were refused in the same moment come before.
outbox   Each submission was delivered, and nothing else. Twice only if a process was killed.
rows     weir.counters holds at most twice the keys of the last window and the minute that rows are
         kept, and none that recovered half a minute before that.
proof    Enough of everything happened.
"""

import bisect
import collections
import datetime
import itertools
import statistics

SECOND = 1_000_000_000
SETTLED = 2 * SECOND       # after a fault
SLOWEST = 5 * SECOND       # two limits of half a second, and two seconds; on a busy machine
CLOCK = 2_000_000          # ns between two readings of the clock of one host
REMEMBERED = SECOND // 2   # the longest that an answer of the counters may take
LATE = 10 * SECOND         # a statement of which no answer came may run so much later
KEEP = 60                  # seconds that a recovered row stays
SWEPT = 30                 # seconds more until it is found

ALLOWED = {"submission": {202, 429, 503}, "invalid": {400, 422, 429, 503}, "page": {200},
           "management": {200, 503}, "health": {200, 503}}

Kept = collections.namedtuple("Kept", "id endpoint received key nonce")
# Instants are nanoseconds since 1970.
Fault = collections.namedtuple("Fault", "name begin end")
Charge = collections.namedtuple("Charge", "earliest latest")


def instant(text):
    """Nanoseconds since 1970 of what weir-forms writes."""
    at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = at - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return since // datetime.timedelta(microseconds=1) * 1_000


class Report:
    def __init__(self):
        self.found = collections.Counter()
        self.seen = collections.Counter()

    def wrong(self, kind, *what):
        self.found[kind] += 1
        if self.found[kind] <= 5:
            print(f"{kind}:", *what)


class Calm:
    """The parts between faults, and those before the first and after the last."""

    def __init__(self, faults):
        self.faults = sorted(faults, key=lambda fault: fault.begin)
        self.begins = [fault.begin for fault in self.faults]

    def holds(self, start, end):
        after = bisect.bisect_right(self.begins, end)
        return after == 0 or self.faults[after - 1].end + SETTLED <= start


def judge_status(attempts, calm, report):
    """The times that answers took in calm parts, in ms."""
    times = []
    for each in attempts:
        report.seen[f"{each.kind} {each.status or ('walked' if each.walked else 'unanswered')}"] += 1
        took = each.end - each.start
        if each.walked:
            continue
        if each.status is not None and each.status not in ALLOWED[each.kind]:
            report.wrong("status", each)
        if each.status == 503 and each.code not in ("storage_unavailable", None):
            report.wrong("status", each)
        if took > SLOWEST:
            report.wrong("status", f"{took / SECOND:.1f} s", each)
        if calm.holds(each.start, each.end):
            times.append(took / 1e6)
            if each.status in (None, 503):
                report.wrong("status", "in a calm part", each)
    return times


def judge_kept(attempts, rows, report):
    by_nonce = collections.defaultdict(list)
    for row in rows:
        by_nonce[row.nonce].append(row)
    told = collections.defaultdict(list)
    for each in attempts:
        if each.kind in ("submission", "invalid"):
            told[each.nonce].append(each)
    for nonce in by_nonce.keys() - told.keys():
        report.wrong("kept", "nobody sent", by_nonce[nonce])
    for nonce, tries in told.items():
        there = by_nonce.get(nonce, [])
        accepted = [each for each in tries if each.status == 202]
        unsure = any(each.status in (None, 503) for each in tries)
        if len(there) > 1 or bool(accepted) > len(there) or there and not (accepted or unsure):
            report.wrong("kept", there, tries)
        for each in accepted:
            if there and (each.id, each.received) != (there[0].id, there[0].received):
                report.wrong("kept", "under another name", there, each)
        if sum(not each.replayed for each in accepted) > 1:
            report.wrong("key", tries)
        if any(each.replayed for each in accepted) and (tries[0].key is None or len(tries) == 1):
            report.wrong("key", "a replay of nothing", tries)
        report.seen["replays"] += sum(bool(each.replayed) for each in accepted)
        report.seen["kept, though not told so"] += bool(there) and not accepted
    once = collections.Counter((row.endpoint, row.key) for row in rows if row.key)
    for key, times in once.items():
        if times > 1:
            report.wrong("key", key, "is there", times, "times")
    if len({row.id for row in rows}) != len(rows):
        report.wrong("kept", "an id is there twice")
    return told, by_nonce


def charges(told, by_nonce):
    """Of each source and each endpoint what it was surely charged, and within which time."""
    sources, endpoints = collections.defaultdict(list), collections.defaultdict(list)
    for nonce, tries in told.items():
        for row in by_nonce.get(nonce, []):
            at = instant(row.received)
            first = min(each.start for each in tries)
            sources[tries[0].source].append(Charge(first, at + 1_000_000))
            endpoints[row.endpoint].append(Charge(at, at))
        for each in tries:
            if each.status in (400, 422) or each.replayed:  # let through by both
                sources[each.source].append(Charge(each.start, each.end))
                endpoints[each.endpoint].append(Charge(each.start, each.end))
            elif each.scope == "endpoint":
                sources[each.source].append(Charge(each.start, each.end))
    return sources, endpoints


def judge_over(charged, limit, window, report):
    for who, all_of in charged.items():
        sure = collections.Counter()
        for each in all_of:
            if each.earliest // window == each.latest // window:
                sure[each.latest // window] += 1
            else:
                report.seen["charges astride an edge"] += 1
        for number, count in sure.items():
            report.seen["full windows"] += count == limit
            if count > limit:
                report.wrong("over", who, "had", count, "in window", number, "of", limit)


def judge_refusals(attempts, scope, limit, window, report):
    who = (lambda each: each.source) if scope == "ip" else (lambda each: each.endpoint)
    possible = collections.defaultdict(list)  # when each began that may be charged to a window
    for each in attempts:
        if each.kind not in ("submission", "invalid"):
            continue
        if each.status == 429 and (each.scope == "ip" or scope == "endpoint"):
            continue
        last = each.end + (LATE if each.status in (None, 503) else 0)
        for number in range(each.start // window, last // window + 1):
            possible[who(each), number].append(each.start)
    for starts in possible.values():
        starts.sort()
    for each in attempts:
        if each.status != 429 or each.scope != scope:
            continue
        report.seen[f"refused by {scope}"] += 1
        numbers = range((each.start - REMEMBERED) // window, (each.end + CLOCK) // window + 1)
        if all(bisect.bisect(possible[who(each), number], each.end) < limit for number in numbers):
            report.wrong("refusal", each)
        ends = [(number + 1) * window for number in numbers]
        if not any(waits_until(each, end) for end in ends):
            if not any(waits_until(each, ends[-1] + later * window) for later in range(1, 10)):
                report.wrong("retry", each)
            report.seen["told to wait for a later window"] += 1


def waits_until(refused, end):
    """Whether Retry-After, said at some time between start and end, is that in whole seconds."""
    left_at_most = end - refused.start + REMEMBERED
    left_at_least = end - refused.end - CLOCK
    return left_at_least <= refused.retry * SECOND < left_at_most + SECOND


def judge_outbox(delivered, rows, killed, report):
    times = collections.Counter(delivered)
    report.seen["delivered twice"] = sum(count > 1 for count in times.values())
    ids = {row.id for row in rows}
    if times.keys() != ids:
        report.wrong("outbox", len(ids - times.keys()), "are missing,", len(times.keys() - ids),
                     "were never kept")
    if max(times.values(), default=0) > 1 + killed or not killed and report.seen["delivered twice"]:
        report.wrong("outbox", report.seen["delivered twice"], "were delivered more than once")


def judge_rows(samples, attempts, window, report):
    """Of (instant, rows, stale rows)."""
    asked = sorted((each.end, each.source) for each in attempts
                   if each.kind in ("submission", "invalid"))
    ends = [end for end, _ in asked]
    for at, rows, stale in samples:
        since = bisect.bisect(ends, at - KEEP * SECOND - 2 * window)
        live = len({source for _, source in itertools.islice(asked, since, bisect.bisect(ends, at))})
        report.seen["most rows"] = max(report.seen["most rows"], rows)
        if rows > 2 * live + 100 or stale:
            report.wrong("rows", rows, "for", live, "keys,", stale, "stale")


def judge_proof(attempts, report):
    for what in ("submission 202", "refused by ip", "replays", "full windows"):
        if report.seen[what] < max(10, len(attempts) // 1_000):
            report.wrong("proof", "only", report.seen[what], "of", what)


def judge(attempts, rows, faults, limits, window, report):
    """The times that answers took in calm parts."""
    times = judge_status(attempts, Calm(faults), report)
    sources, endpoints = charges(*judge_kept(attempts, rows, report))
    judge_over(sources, limits["ip"], window, report)
    judge_over(endpoints, limits["endpoint"], window, report)
    for scope, limit in limits.items():
        judge_refusals(attempts, scope, limit, window, report)
    judge_proof(attempts, report)
    return times


def p99(times):
    return statistics.quantiles(times, n=100)[98] if len(times) > 1 else 0

# SPDX-License-Identifier: BSL-1.0
"""proxy.test.py PROGRAM: what an operator's limits do, through the running proxy.

Row numbers of the claims are those of the tables of cases. proxy_framing.test.py,
proxy_reload.test.py and proxy_aborts.test.py have the rest. Windows are an hour or a minute long; a
test whose window turned under it is done again.
"""

import math
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import proxied
from proxied import (PATIENCE, Client, Gate, Proxy, Upstream, in_one_window, refused_port, reply,
                     site, until)

HOUR = "1h"
ONE = {"threads": 1}  # then what follows a response comes after all that it leaves behind
KEYED = b"GET / HTTP/1.1\r\nHost: test.example\r\nX-Key: %d\r\n\r\n"
QUOTA = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def quota(answer):
    """Limit and Remaining as numbers, or None where nothing is told."""
    limit, left = (answer.fields.one(name) for name in QUOTA[:2])
    return None if limit is None else (int(limit), int(left))


def told_quota(answer):
    return set(QUOTA) & answer.fields.names()


def statuses(proxy, count, **how):
    return [proxy.ask(**how).status for _ in range(count)]


class Keys(unittest.TestCase):
    def test_P33_forged_addresses_give_no_new_budget(self):
        def deed():
            with Upstream() as app, \
                    Proxy(site(app.port, {"ip": {"max": 5, "interval": HOUR}})) as proxy:
                passed = [proxy.ask(fields=[("X-Forwarded-For", f"203.0.113.{n}")]).status
                          for n in range(30)]
                self.assertEqual(passed, [200] * 5 + [429] * 25)
                passed = [proxy.ask(fields=[("X-Real-IP", f"203.0.113.{n}")]).status
                          for n in range(30)]
                self.assertEqual(passed, [429] * 30)
                self.assertEqual(len(app.seen), 5)
                self.assertEqual(proxy.ask(source="127.0.0.2").status, 200)
        in_one_window(3600, deed)

    def test_P34_behind_an_unlisted_proxy_all_clients_share_one_budget(self):
        limits = {"ip": {"max": 1, "interval": HOUR}}
        for trusted, expected in (("10.0.0.0/8", [200, 429, 429]), ("127.0.0.2", [200, 200, 429])):
            def deed():
                with Upstream() as app, \
                        Proxy(site(app.port, limits, basic={
                            "trusted_proxies": [trusted]})) as proxy:
                    got = [proxy.ask(source="127.0.0.2", fields=[("X-Forwarded-For", who)]).status
                           for who in ("203.0.113.1", "203.0.113.2", "203.0.113.2")]
                    self.assertEqual(got, expected, trusted)
            in_one_window(3600, deed)

    def test_rows_T_the_client_is_the_last_address_that_no_trusted_proxy_wrote(self):
        rows = [
            ("T01", ["9.9.9.9"], "9.9.9.9"),
            ("T02", ["6.6.6.6, 9.9.9.9"], "9.9.9.9"),
            ("T03", ["6.6.6.6,10.1.1.1 , 9.9.9.9"], "9.9.9.9"),
            ("T04", ["6.6.6.6, 9.9.9.9, 10.0.0.2, 192.168.1.1"], "9.9.9.9"),
            ("T05", ["2001:db8::1, fd00::2"], "2001:db8::/64"),
            ("T06", ["6.6.6.6", "9.9.9.9", "10.0.0.2"], "9.9.9.9"),
            ("T07", ["6.6.6.6, 9.9.9.9", "10.0.0.2"], "9.9.9.9"),
            ("T08", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("T09", ["9.9.9.9:4321, 10.0.0.2:80"], "9.9.9.9"),
            ("T10", ["[2001:db8::1]:4321, [fd00::2]"], "2001:db8::/64"),
            ("T11", ["6.6.6.6, unknown, 10.0.0.2"], "10.0.0.2"),
            ("T12", [], "127.0.0.1"),
            ("T12", [" , "], "127.0.0.1"),
            ("T13", ["6.6.6.6, ::ffff:9.9.9.9, ::ffff:10.0.0.2"], "9.9.9.9"),
            ("T15", ["\xff\xfe, 9.9.9.9"], "9.9.9.9"),
            ("T15", ["6.6.6.6, \xff, 9.9.9.9, 10.0.0.2"], "9.9.9.9"),
        ]
        trusted = ["127.0.0.1", "10.0.0.0/8", "192.168.0.0/16", "fd00::/8"]
        with Upstream() as app, Proxy(site(app.port, basic={
                "trusted_proxies": trusted, "threads": 1, "access_log": "{folder}/access.log",
                "access_log_client": True})) as proxy:
            with proxy.connect() as client:
                for _, lines, _ in rows:
                    client.ask(fields=[("X-Forwarded-For", line) for line in lines])
            # T16: from a peer that is not listed the header is not read.
            proxy.ask(source="127.0.0.9", fields=[("X-Forwarded-For", "9.9.9.9")])
            clients = [words[-1] for words in proxy.access(len(rows) + 1)]
            self.assertEqual(list(zip((row[0] for row in rows), clients)),
                             [(name, client) for name, _, client in rows])
            self.assertEqual(clients[-1], "127.0.0.9")

    def test_the_upstream_is_told_whom_we_heard_from_and_no_word_of_strangers(self):
        with Upstream() as app, \
                Proxy(site(app.port, basic={"trusted_proxies": ["127.0.0.2"]})) as proxy:
            forged = [("X-Forwarded-For", "203.0.113.1"), ("X-Real-IP", "203.0.113.2"),
                      ("Forwarded", "for=203.0.113.3"), ("X-Forwarded-Proto", "https")]
            proxy.ask(fields=forged)
            proxy.ask(fields=forged, source="127.0.0.2")
            strange, trusted = (request.fields for request in app.seen)
            self.assertEqual(strange.all("X-Forwarded-For"), ["127.0.0.1"])
            self.assertEqual(strange.all("X-Forwarded-Proto"), ["http"])
            self.assertFalse({"forwarded", "x-real-ip"} & strange.names())
            self.assertEqual(trusted.all("X-Forwarded-For"), ["203.0.113.1, 127.0.0.2"])
            self.assertEqual(trusted.all("X-Forwarded-Proto"), ["https"])
            self.assertEqual(trusted.all("X-Real-IP"), ["203.0.113.2"])

    def test_P36_a_missing_key_passes_uncounted_or_is_answered_with_its_name(self):
        tags = [("header", "X-API-Key", "the header X-API-Key"),
                ("cookie", "deviceId", "the cookie deviceId"),
                ("query", "user", "the query parameter user")]
        present = {"header": {"fields": [("X-API-Key", "v")]},
                   "cookie": {"fields": [("Cookie", "deviceId=v")]},
                   "query": {"target": "/?user=v"}}
        empty = {"header": {"fields": [("X-API-Key", "")]},
                 "cookie": {"fields": [("Cookie", "deviceId=")]},
                 "query": {"target": "/?user="}}
        for tag, key, words in tags:
            limit = {"tag": tag, "key": key, "max": 2, "interval": HOUR, "headers": True}
            with self.subTest(tag), Upstream() as app, Proxy(site(app.port, {
                    "reject": {**limit, "missing_key": "reject", "status": 503,
                               "message": "slow down"}})) as proxy:
                for how in ({}, empty[tag]):
                    answer = proxy.ask(**how)
                    self.assertEqual((answer.status, answer.body.decode()),
                                     (400, f"Plugin limit, {words} is required"))
                    self.assertFalse({"retry-after", *QUOTA} & answer.fields.names())
                self.assertEqual(app.seen, [])
                self.assertEqual(statuses(proxy, 3, **present[tag]), [200, 200, 503])
            with self.subTest(tag + ", pass"), Upstream() as app, \
                    Proxy(site(app.port, {"pass": limit})) as proxy:
                for how in ({}, empty[tag]):
                    for _ in range(4):
                        answer = proxy.ask(**how)
                        self.assertEqual((answer.status, quota(answer)), (200, None))
                self.assertEqual(quota(proxy.ask(**present[tag])), (2, 1))

    def test_O12_without_a_key_all_pass_or_none_or_they_share_one_budget(self):
        expected = {"pass": [200] * 4, "reject": [400] * 4, "shared_bucket": [200, 200, 429, 429]}
        for way, answers in expected.items():
            limit = {"tag": "header", "key": "X-Api-Key", "max": 2, "interval": HOUR,
                     "missing_key": way}
            with self.subTest(way), Upstream() as app, \
                    Proxy(site(app.port, {"key": limit})) as proxy:
                got = [proxy.ask(fields=fields).status
                       for fields in ([], [("X-Api-Key", "")], [], [("X-Api-Key", "  ")])]
                self.assertEqual(got, answers)

    def test_O15_spellings_of_a_path_share_the_budget_of_its_route(self):
        def deed():
            with Upstream() as app, Proxy(site(app.port, {
                    "once": {"max": 3, "interval": HOUR, "policy": "fixed"},
                    "seen": {"max": 0, "dry_run": True}}, locations={"lang": {}})) as proxy:
                got = [proxy.ask(target).status
                       for target in ("/lang", "/LANG", "/lang/", "//lang", "/./lang")]
                self.assertEqual(got, [200, 200, 200, 429, 429])
                got = [proxy.ask(target, source="127.0.0.2").status for target in
                       ("/verify/AAA", "/verify/BBB", "/verify/CCC", "/verify/DDD")]
                self.assertEqual(got, [200, 200, 200, 429])
                lines = proxy.lines("would have been refused")
                self.assertEqual({re.search(r' location="([^"]*)"', line)[1] for line in lines},
                                 {"lang"})
        in_one_window(3600, deed)

    def test_O15_spellings_of_a_path_find_the_location_of_its_plain_one(self):
        with Upstream() as app, Proxy(site(
                app.port, {"none": {"max": 0}, }, locations={
                    "all": {"plugins": []}, "door": {"path": "/door"}})) as proxy:
            for target in ("/door", "/door/", "//door", "/./door", "/%64oor", "/a/../door",
                           "/a/%2e%2e/door", "/door?x=1", "http://other/door", "/%2fdoor",
                           "/.//door", "/;x/door"):
                self.assertEqual(proxy.ask(target).status, 429, target)
            self.assertEqual(proxy.ask("/other").status, 200)
            self.assertEqual(app.targets(), ["/other"])

    def test_B21_each_limit_counts_the_requests_that_have_its_key(self):
        with Upstream() as app, Proxy(site(app.port, {
                "fast": {"tag": "query", "key": "b", "max": 1000, "interval": "1s"},
                "slow": {"tag": "query", "key": "a", "max": 1, "interval": HOUR}})) as proxy:
            for target, answers in (("/?b=1", [200, 200]), ("/?a=1", [200, 429]),
                                    ("/?a=2&b=2", [200, 429]), ("/", [200, 200])):
                self.assertEqual(statuses(proxy, 2, target=target), answers, target)

    def test_10000_keys_of_5_requests_each_are_all_below_10(self):
        keys, rounds, batch = 10_000, 5, 500
        with Upstream({"/": lambda *_: reply(fields=[("Cache-Control", "max-age=3600")])}) as app, \
                Proxy(site(app.port, {"key": {"tag": "header", "key": "X-Key", "max": 10,
                                              "interval": HOUR}}, cache=True)) as proxy:
            proxy.ask(fields=[("X-Key", "first")])
            with proxy.connect() as client:
                for first in range(0, keys * rounds, batch):
                    client.send(b"".join(KEYED % (n % keys) for n in range(first, first + batch)))
                    for _ in range(batch):
                        head = client.until(b"\r\n\r\n")
                        self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
                        client.until(b"ok\n")
                # Each is counted, too: 5 are left of everybody's 10.
                got = [client.ask(fields=[("X-Key", str(keys - 1))]).status for _ in range(6)]
            self.assertEqual(got, [200] * 5 + [429])
            self.assertEqual(len(app.seen), 1)


    def test_a_flood_of_other_keys_frees_no_key_that_is_exhausted(self):
        with Upstream({"/": lambda *_: reply(fields=[("Cache-Control", "max-age=3600")])}) as app, \
                Proxy(site(app.port, {"key": {"tag": "header", "key": "X-Key", "max": 3,
                                              "interval": HOUR}}, cache=True,
                           basic={"max_keys": 256})) as proxy, proxy.connect() as client:
            mine = [("X-Key", "mine")]
            self.assertEqual([client.ask(fields=mine).status for _ in range(4)], [200] * 3 + [429])
            for first in range(0, 5_000, 250):
                client.send(b"".join(KEYED % n for n in range(first, first + 250)))
                for _ in range(250):
                    self.assertIn(client.answer().status, (200, 429))
                self.assertEqual(client.ask(fields=mine).status, 429)


class Refusals(unittest.TestCase):
    def test_P43_the_default_refusal_says_how_far_over_and_when_to_come_again(self):
        def deed():
            with Upstream() as app, \
                    Proxy(site(app.port, {"ip": {"max": 5, "interval": "1m"}})) as proxy:
                self.assertEqual(statuses(proxy, 5), [200] * 5)
                answer = proxy.ask()
                self.assertEqual((answer.status, answer.body),
                                 (429, b"Plugin limit, exceed limit 6/5"))
                self.assertEqual(answer.fields.all("Retry-After"), ["60"])
                self.assertEqual(answer.fields.all("Cache-Control"), ["no-store"])
                self.assertEqual(told_quota(answer), set())
        in_one_window(60, deed)

    def test_P44_Retry_After_is_the_interval_in_seconds_rounded_up(self):
        rows = [("30s", "30"), ("1m", "60"), ("500ms", "1"), ("1500ms", "2"), ("1h30m", "5400")]
        for interval, seconds in rows:
            with self.subTest(interval), Upstream() as app, \
                    Proxy(site(app.port, {"ip": {"max": 1, "interval": interval}})) as proxy, \
                    proxy.connect() as client:
                refused = until(lambda: (answer := client.ask()).status == 429 and answer)
                self.assertEqual(refused.fields.all("Retry-After"), [seconds])

    def test_a_limit_of_0_promises_no_wait_since_none_helps(self):
        with Upstream() as app, Proxy(site(app.port, {"none": {"max": 0}})) as proxy:
            answer = proxy.ask()
            self.assertEqual((answer.status, answer.body),
                             (429, b"Plugin limit, exceed limit 1/0"))
            self.assertIsNone(answer.fields.one("Retry-After"))

    def test_P45_status_and_message_replace_those_of_the_refusal_and_leave_the_wait(self):
        with Upstream() as app, Proxy(site(app.port, {
                "ip": {"max": 1, "interval": HOUR, "status": 503,
                       "message": "slow down"}})) as proxy:
            proxy.ask()
            answer = proxy.ask()
            self.assertEqual((answer.status, answer.body, answer.fields.one("Retry-After")),
                             (503, b"slow down", "3600"))

    def test_P42_a_request_that_the_second_limit_refuses_has_spent_the_first(self):
        def deed():
            with Upstream() as app, Proxy(site(app.port, {
                    "first": {"max": 3, "interval": HOUR},
                    "second": {"max": 1, "interval": HOUR}})) as proxy:
                bodies = [proxy.ask().body for _ in range(5)]
                self.assertEqual(bodies, [b"ok\n", b"Plugin limit, exceed limit 2/1",
                                          b"Plugin limit, exceed limit 2/1",
                                          b"Plugin limit, exceed limit 4/3",
                                          b"Plugin limit, exceed limit 4/3"])
                self.assertEqual(len(app.seen), 1)
        in_one_window(3600, deed)

    def test_a_refused_HEAD_has_no_body_and_a_refused_POST_the_whole_of_it(self):
        with Upstream() as app, Proxy(site(app.port, {"none": {"max": 0}})) as proxy:
            get, head = proxy.ask(), proxy.ask(method="HEAD")
            self.assertEqual((head.status, head.body), (429, b""))
            for name in ("Content-Length", "Content-Type", "Cache-Control"):
                self.assertEqual(head.fields.one(name), get.fields.one(name))
            for size in (3, 3_000_000):
                answer = proxy.ask(method="POST", body=b"x" * size)
                self.assertEqual((answer.status, answer.body), (429, get.body))
            self.assertEqual(app.seen, [])

    def test_P41_a_hit_of_the_cache_spends_no_unit_before_the_upstream_and_one_on_arrival(self):
        kept = {"/kept": lambda *_: reply(fields=[("Cache-Control", "max-age=3600")])}
        for step, left in (("proxy_upstream", 98), ("request", 88)):
            def deed():
                with Upstream(kept) as app, Proxy(site(app.port, {
                        "guard": {"max": 100, "interval": HOUR, "headers": True,
                                  "step": step}}, cache=True)) as proxy:
                    answers = [proxy.ask("/kept") for _ in range(11)]
                    self.assertEqual([answer.body for answer in answers], [b"ok\n"] * 11)
                    self.assertEqual(app.targets(), ["/kept"])
                    told = [quota(answer) for answer in answers]
                    spent = ([(100, 99)] + [None] * 10 if step == "proxy_upstream" else
                             [(100, 99 - n) for n in range(11)])
                    self.assertEqual(told, spent)
                    self.assertEqual(quota(proxy.ask("/other")), (100, left))
            with self.subTest(step):
                in_one_window(3600, deed)


class Quota(unittest.TestCase):
    def test_P47_P48_the_budget_is_told_until_and_at_the_refusal(self):
        def deed():
            with Upstream() as app, Proxy(site(app.port, {
                    "ip": {"max": 3, "interval": "1m", "headers": True}})) as proxy:
                before = time.time()
                answers = [proxy.ask() for _ in range(4)]
                after = time.time()
                self.assertEqual([quota(answer) for answer in answers],
                                 [(3, 2), (3, 1), (3, 0), (3, 0)])
                self.assertEqual([answer.status for answer in answers], [200, 200, 200, 429])
                self.assertEqual(answers[3].fields.one("Retry-After"), "60")
                # P48, P49: the whole is back when the window after this one is over.
                possible = {str(math.ceil(120 - at % 60)) for at in (before, after)}
                for answer in answers:
                    self.assertIn(answer.fields.one("X-RateLimit-Reset"), possible)
                self.assertEqual(quota(proxy.ask(source="127.0.0.2")), (3, 2))
        in_one_window(60, deed)

    def test_P50_a_limit_of_requests_at_once_tells_no_reset(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app, Proxy(site(app.port, {
                "now": {"type": "inflight", "max": 5, "headers": True}}, basic=ONE)) as proxy:
            answer = proxy.ask()
            self.assertEqual((quota(answer), told_quota(answer)), ((5, 4), set(QUOTA[:2])))
            with proxy.connect() as slow:
                slow.request("/slow")
                gate.hold(1)
                self.assertEqual(quota(proxy.ask()), (5, 3))
                gate.opened.set()
                self.assertEqual(quota(slow.answer()), (5, 4))

    def test_P51_the_budget_is_on_every_response_whoever_made_it(self):
        limit = {"ip": {"max": 100, "interval": HOUR, "headers": True}}
        silent = Gate()
        cases = [
            ("another filter's 403", 403, {"ua": {"category": "ua_restriction", "type": "deny",
                                                  "ua_list": ["curl"]}}, None),
            ("another filter's 404", 404, {"uri": {"category": "uri_block", "status": 404,
                                                   "paths": ["^/"]}}, None),
            ("the upstream's 401", 401, {}, lambda *_: reply(401)),
            ("the upstream's own budget is replaced", 200, {},
             lambda *_: reply(fields=[("X-RateLimit-Limit", "7"),
                                      ("x-ratelimit-remaining", "6")])),
            ("504", 504, {}, silent),
            ("502", 502, {}, lambda *_: None),
        ]
        for name, status, others, answer in cases:
            with self.subTest(name), Upstream({"/": answer or (lambda *_: reply())}) as app, \
                    Proxy(site(app.port, {**limit, **others}, up={
                        "response_timeout": "200ms" if status == 504 else "20s"})) as proxy:
                got = proxy.ask(fields=[("User-Agent", "curl/8")])
                self.assertEqual(got.status, status)
                self.assertEqual(quota(got), (100, 99))
                self.assertIsNotNone(got.fields.one("X-RateLimit-Reset"))
                if status > 500:
                    self.assertEqual(got.fields.one("Cache-Control"), "no-store")
        silent.opened.set()
        with Proxy(site(refused_port(), limit)) as proxy:
            got = proxy.ask()
            self.assertEqual((got.status, quota(got)), (502, (100, 99)))

    def test_P52_the_least_that_is_left_is_told_in_either_order(self):
        limits = [("a", {"max": 100, "interval": HOUR, "headers": True}),
                  ("b", {"max": 2, "interval": HOUR, "headers": True})]
        for order in (limits, limits[::-1]):
            with Upstream() as app, Proxy(site(app.port, dict(order))) as proxy:
                self.assertEqual(quota(proxy.ask()), (2, 1))

    def test_P53_a_refusal_tells_the_budget_of_the_limit_that_refused(self):
        with Upstream() as app, Proxy(site(app.port, {
                "a": {"max": 2, "interval": HOUR, "headers": True},
                "b": {"max": 1, "interval": HOUR, "headers": True}})) as proxy:
            self.assertEqual(quota(proxy.ask()), (1, 0))
            answer = proxy.ask()
            self.assertEqual((answer.status, quota(answer)), (429, (1, 0)))

    def test_P54_a_refusal_by_a_limit_that_does_not_report_tells_none(self):
        with Upstream() as app, Proxy(site(app.port, {
                "a": {"max": 100, "interval": HOUR, "headers": True},
                "b": {"max": 1, "interval": HOUR}})) as proxy:
            self.assertEqual(quota(proxy.ask()), (100, 99))
            answer = proxy.ask()
            self.assertEqual((answer.status, told_quota(answer)), (429, set()))

    def test_P55_without_headers_nothing_is_told_anywhere(self):
        with Upstream() as app, \
                Proxy(site(app.port, {"ip": {"max": 1, "interval": HOUR}})) as proxy:
            for status in (200, 429):
                answer = proxy.ask()
                self.assertEqual((answer.status, told_quota(answer)), (status, set()))
        with Proxy(site(refused_port(), {"ip": {"max": 1, "interval": HOUR}})) as proxy:
            self.assertEqual(told_quota(proxy.ask()), set())

    def test_the_fields_of_the_draft_are_told_by_name_only(self):
        with Upstream() as app, Proxy(site(app.port, {
                "perIp": {"max": 3, "interval": "1m", "headers": True,
                          "quota": "draft_11"}})) as proxy:
            answer = proxy.ask()
            self.assertEqual(answer.fields.one("RateLimit-Policy"), '"perIp";q=3;w=60')
            self.assertRegex(answer.fields.one("RateLimit"), r'^"perIp";r=2;t=\d+$')
            self.assertEqual(told_quota(answer), set())


class AtOnce(unittest.TestCase):
    """P28 to P31: limits of requests in progress."""

    def test_P28_P29_one_at_a_time_and_none_at_all(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app, Proxy(site(app.port, {
                "one": {"type": "inflight", "max": 1}}, basic=ONE)) as proxy, \
                proxy.connect() as slow:
            slow.request("/slow")
            gate.hold(1)
            refused = proxy.ask()
            self.assertEqual((refused.status, refused.body),
                             (429, b"Plugin limit, exceed limit 2/1"))
            self.assertIsNone(refused.fields.one("Retry-After"))  # P31
            self.assertEqual(proxy.ask(source="127.0.0.2").status, 200)
            self.assertEqual(proxy.status()["permits_held"], 1)
            gate.opened.set()
            self.assertEqual(slow.answer().status, 200)
            self.assertEqual(statuses(proxy, 3), [200] * 3)
            self.assertEqual(proxy.status()["permits_held"], 0)
        with Upstream() as app, Proxy(site(app.port, {
                "none": {"type": "inflight", "max": 0}}, basic=ONE)) as proxy:
            self.assertEqual([proxy.ask().body for _ in range(2)],
                             [b"Plugin limit, exceed limit 1/0"] * 2)

    def test_P28_the_place_is_held_until_the_body_of_the_response_has_gone(self):
        gate = Gate()

        def in_two(_, link):
            link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nfir")
            gate(None, None)
            return b"st\n"
        with Upstream({"/two": in_two}) as app, Proxy(site(app.port, {
                "one": {"type": "inflight", "max": 1}}, basic=ONE)) as proxy, \
                proxy.connect() as slow:
            slow.request("/two")
            self.assertEqual(slow.head()[0], 200)
            gate.hold(1)
            self.assertEqual(proxy.ask().status, 429)
            gate.opened.set()
            self.assertEqual(b"".join(slow.pieces(6)), b"first\n")
            until(lambda: proxy.status()["permits_held"] == 0)
            self.assertEqual(proxy.ask().status, 200)

    def test_P28_the_place_is_free_after_an_error_a_refusal_and_a_disconnect(self):
        gate = Gate()
        limits = {"one": {"type": "inflight", "max": 1},
                  "not": {"category": "uri_block", "paths": ["^/forbidden"]}}
        with Upstream({"/slow": gate, "/gone": lambda *_: None}) as app, \
                Proxy(site(app.port, limits, basic=ONE)) as proxy:
            self.assertEqual(statuses(proxy, 2, target="/gone"), [502, 502])
            self.assertEqual(statuses(proxy, 2, target="/forbidden"), [403, 403])
            with proxy.connect() as client:
                client.request("/slow")
                gate.hold(1)
            until(lambda: proxy.ask().status == 200, what="the place of a client that went")
            until(lambda: proxy.status()["permits_held"] == 0)
            gate.opened.set()

    def test_P28_who_has_the_whole_of_a_response_has_given_its_place_back(self):
        def bare(_, link):
            link.send(b"HTTP/1.0 200 OK\r\n\r\nok\n")
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok\n\r\n0\r\n\r\n"
        kept = reply(fields=[("Cache-Control", "max-age=3600")])
        limits = {"one": {"type": "inflight", "max": 1},
                  "not": {"category": "uri_block", "paths": ["^/forbidden"]}}
        ways = [("/", "GET", 200), ("/", "HEAD", 200), ("/chunked", "GET", 200),
                ("/bare", "GET", 200), ("/kept", "GET", 200), ("/forbidden", "GET", 403),
                ("/gone", "GET", 502)]
        with Upstream({"/gone": lambda *_: None, "/chunked": lambda *_: chunked, "/bare": bare,
                       "/kept": lambda *_: kept}) as app, \
                Proxy(site(app.port, limits, cache=True, basic={"threads": 4})) as proxy:
            for _ in range(40):
                for target, method, status in ways:
                    self.assertEqual(proxy.ask(target, method).status, status, target)

    def test_P28_never_more_than_the_limit_are_with_the_upstream(self):
        now, most, lock = [0], [0], threading.Lock()

        def work(*_):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            until(lambda: most[0] == 3)  # until so many have been there together
            with lock:
                now[0] -= 1
            return reply()
        with Upstream({"/": work}) as app, Proxy(site(app.port, {
                "three": {"type": "inflight", "max": 3}}, basic={"threads": 4})) as proxy:
            got = []

            def ask():
                with proxy.connect() as client:
                    got.extend(client.ask().status for _ in range(50))
            askers = [threading.Thread(target=ask) for _ in range(16)]
            for asker in askers:
                asker.start()
            for asker in askers:
                asker.join(PATIENCE)
            self.assertEqual((most[0], len(got), set(got)), (3, 16 * 50, {200, 429}))
            self.assertEqual(proxy.status()["permits_held"], 0)

    def test_P30_two_limits_hold_two_places_and_give_both_back(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app, Proxy(site(app.port, {
                "one": {"type": "inflight", "max": 1},
                "two": {"type": "inflight", "max": 2}}, basic=ONE)) as proxy, \
                proxy.connect() as slow:
            slow.request("/slow")
            gate.hold(1)
            self.assertEqual(proxy.status()["permits_held"], 2)
            self.assertEqual(proxy.ask().body, b"Plugin limit, exceed limit 2/1")
            gate.opened.set()
            slow.answer()
            until(lambda: proxy.status()["permits_held"] == 0)
            self.assertEqual(proxy.ask().status, 200)

    def test_P31_a_thousand_refused_requests_leave_no_place_taken(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app, Proxy(site(app.port, {
                "three": {"type": "inflight", "max": 3},
                "one": {"type": "inflight", "max": 1}}, basic=ONE)) as proxy, \
                proxy.connect() as slow, \
                proxy.connect() as other:
            slow.request("/slow")
            gate.hold(1)
            # Each takes a place of the first limit for as long as the refusal by the second lasts.
            got = {other.ask().body for _ in range(1000)}
            self.assertEqual(got, {b"Plugin limit, exceed limit 2/1"})
            self.assertEqual(proxy.status()["permits_held"], 2)
            gate.opened.set()
            slow.answer()


LINE = re.compile(r'WARN weir-proxy: dry run, the request would have been refused '
                  r'category="(?P<category>[^"]*)" location="(?P<location>[^"]*)" '
                  r'status=(?P<status>\d+) reason=(?P<reason>.*) matched="(?P<matched>[^"]*)" '
                  r'client_ip="(?P<client_ip>[^"]*)" method="(?P<method>[^"]*)" '
                  r'uri=(?P<uri>\S*) request_id="(?P<request_id>[^"]*)" skipped=(?P<skipped>\d+)')
MORE = re.compile(r'WARN weir-proxy: dry run, more requests would have been refused '
                  r'category="limit" name="ip" skipped=(\d+)')


def shadows(proxy):
    """The lines with a request, and how many were skipped by all lines together."""
    found = [match.groupdict() for match in LINE.finditer(proxy.told())]
    more = sum(int(match[1]) for match in MORE.finditer(proxy.told()))
    return found, more + sum(int(one["skipped"]) for one in found)


class DryRun(unittest.TestCase):
    def test_P56_P57_a_line_tells_all_fields_of_a_refusal_that_is_not_made(self):
        with Upstream() as app, Proxy(site(app.port, {"ip": {
                "max": 10, "interval": HOUR, "dry_run": True, "status": 503}})) as proxy:
            self.assertEqual(statuses(proxy, 11, method="POST", target="/api/items?a=1"),
                             [200] * 11)
            [line], skipped = until(lambda: shadows(proxy)[0] and shadows(proxy))
            self.assertEqual(line, {
                "category": "limit", "location": "api", "status": "503",
                "reason": "Plugin limit, exceed limit 11/10", "matched": "127.0.0.1",
                "client_ip": "127.0.0.1", "method": "POST", "uri": "/api/items?a=1",
                "request_id": "", "skipped": "0"})

    def test_P56_a_key_that_is_missing_is_not_rejected_in_a_dry_run(self):
        with Upstream() as app, Proxy(site(app.port, {"key": {
                "tag": "header", "key": "X-API-Key", "max": 1, "missing_key": "reject",
                "dry_run": True}})) as proxy:
            self.assertEqual(proxy.ask().status, 200)
            [line], _ = until(lambda: shadows(proxy)[0] and shadows(proxy))
            self.assertEqual((line["status"], line["reason"]),
                             ("400", "Plugin limit, the header X-API-Key is required"))

    def test_nothing_that_a_client_writes_breaks_a_line(self):
        with Upstream() as app, Proxy(site(app.port, {"key": {
                "tag": "header", "key": "X-Key", "max": 0, "dry_run": True}})) as proxy:
            proxy.ask('/a"b', fields=[("X-Key", 'v" skipped=9 \x1b\xe9\\')])  # ESC is refused
            proxy.ask('/a"b', fields=[("X-Key", 'v" skipped=9 \xe9\\ ' + "x" * 5000)])
            [line], _ = until(lambda: shadows(proxy)[0] and shadows(proxy))
            self.assertTrue(line["matched"].startswith("v\\x22 skipped=9 \\xe9\\x5c xxx"))
            self.assertLess(len(line["matched"]), 700)

    def after_a_flood(self, deed):
        """Calls it with a proxy that would have refused 25 requests within one second."""
        for _ in range(10):
            with Upstream() as app, \
                    Proxy(site(app.port, {"ip": {"max": 0, "dry_run": True}})) as proxy, \
                    proxy.connect() as client:
                until(lambda: time.time() % 1 < 0.5)
                before = int(time.time())
                self.assertEqual([client.ask().status for _ in range(25)], [200] * 25)
                if int(time.time()) == before:
                    return deed(proxy)
        raise AssertionError("25 requests never took less than a second")

    def test_P58_ten_lines_a_second_and_the_rest_is_told_within_the_next(self):
        def deed(proxy):
            start = time.monotonic()
            until(lambda: shadows(proxy)[1] == 15, what="15 skipped ones")
            self.assertLess(time.monotonic() - start, 4)  # the next second, on a busy machine
            self.assertEqual(len(shadows(proxy)[0]), 10)
            self.assertEqual({line["skipped"] for line in shadows(proxy)[0]}, {"0"})
            figures = proxy.dry_run("ip")
            self.assertEqual([figures[name] for name in ("seen", "logged", "skipped")],
                             [25, 10, 15])
        self.after_a_flood(deed)

    def test_P58_what_was_skipped_is_told_at_the_end(self):
        def deed(proxy):
            self.assertEqual(proxy.stop(), 0)
            lines, skipped = shadows(proxy)
            self.assertEqual((len(lines), skipped), (10, 15))
        self.after_a_flood(deed)

    def test_P58_no_refusal_is_lost_and_no_second_has_more_than_ten_lines(self):
        with Upstream() as app, Proxy(site(app.port, {"ip": {
                "max": 0, "dry_run": True}})) as proxy, proxy.connect() as client:
            first, asked = int(time.time()), 0
            while int(time.time()) < first + 3:
                client.ask()
                asked += 1
            until(lambda: sum((len(shadows(proxy)[0]), shadows(proxy)[1])) == asked,
                  what=f"{asked} told")
            self.assertLessEqual(len(shadows(proxy)[0]), 10 * 4)
            self.assertGreaterEqual(len(shadows(proxy)[0]), 10 * 2)
            self.assertEqual(proxy.dry_run("ip")["seen"], asked)

    def test_P59_of_100_tries_at_10_90_would_be_refused_and_all_are_served(self):
        def deed():
            with Upstream() as app, Proxy(site(app.port, {"ip": {
                    "max": 10, "interval": HOUR, "dry_run": True}})) as proxy:
                with proxy.connect() as client:
                    self.assertEqual([client.ask().status for _ in range(100)], [200] * 100)
                until(lambda: sum((len(shadows(proxy)[0]), shadows(proxy)[1])) == 90)
                [most] = proxy.dry_run("ip")["most_refused"]
                self.assertEqual(most["times"], 90)
                self.assertNotIn("127.0.0.1", str(proxy.dry_run("ip")))
        in_one_window(3600, deed)

    def test_P59_an_inflight_limit_keeps_no_place_of_what_it_would_refuse(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app, Proxy(site(app.port, {"one": {
                "type": "inflight", "max": 1, "dry_run": True}})) as proxy, \
                proxy.connect() as first, proxy.connect() as second:
            first.request("/slow")
            gate.hold(1)
            second.request("/slow")
            gate.hold(2)
            self.assertEqual(proxy.status()["permits_held"], 1)
            gate.opened.set()
            self.assertEqual([first.answer().status, second.answer().status], [200, 200])
            self.assertEqual(proxy.dry_run("one")["seen"], 1)

    def test_P60_over_it_a_dry_run_tells_no_budget_and_leaves_that_of_another(self):
        with Upstream() as app, Proxy(site(app.port, {
                "real": {"max": 100, "interval": HOUR, "headers": True},
                "dry": {"max": 2, "interval": HOUR, "headers": True, "dry_run": True}})) as proxy:
            self.assertEqual([quota(proxy.ask()) for _ in range(3)], [(2, 1), (2, 0), (100, 97)])
        with Upstream() as app, Proxy(site(app.port, {
                "dry": {"max": 1, "interval": HOUR, "headers": True, "dry_run": True}})) as proxy:
            self.assertEqual([quota(proxy.ask()) for _ in range(2)], [(1, 0), None])

    def test_P61_restrictions_have_the_same_dry_run(self):
        cases = {
            "ip_restriction": ({"type": "deny", "ip_list": ["127.0.0.0/8"]}, "127.0.0.1"),
            "ua_restriction": ({"type": "deny", "ua_list": ["(?i)curl"]}, "Curl/8.1"),
            "referer_restriction": ({"type": "deny", "referer_list": ["*.bad.example"]},
                                    "https://www.bad.example/x"),
            "uri_block": ({"paths": ["^/admin"], "message": "Request is forbidden"}, "/admin/x"),
        }
        how = {"target": "/admin/x", "fields": [("User-Agent", "Curl/8.1"),
                                                ("Referer", "https://www.bad.example/x")]}
        for category, (rule, matched) in cases.items():
            rule = {"category": category, **rule}
            with self.subTest(category), Upstream() as app, Proxy(site(app.port, {
                    "dry": {**rule, "dry_run": True}})) as proxy:
                self.assertEqual(proxy.ask(**how).status, 200)
                [line], _ = until(lambda: shadows(proxy)[0] and shadows(proxy))
                told = [line[name] for name in ("category", "status", "reason", "matched")]
                self.assertEqual(told, [category, "403", "Request is forbidden", matched])
            with self.subTest(category + ", enforced"), Upstream() as app, \
                    Proxy(site(app.port, {"real": rule})) as proxy:
                answer = proxy.ask(**how)
                self.assertEqual((answer.status, answer.body), (403, b"Request is forbidden"))
                self.assertEqual(app.seen, [])

    def test_B23_a_dry_run_and_its_enforced_twin_count_apart(self):
        rule = {"max": 1, "interval": HOUR, "policy": "gcra", "burst": 2}
        with Upstream() as app, Proxy(site(app.port, {"dry": {**rule, "dry_run": True}})) as proxy:
            self.assertEqual(statuses(proxy, 4), [200] * 4)
            self.assertEqual(proxy.dry_run("dry")["seen"], 2)
        with Upstream() as app, Proxy(site(app.port, {
                "dry": {**rule, "dry_run": True}, "real": rule})) as proxy:
            self.assertEqual(statuses(proxy, 4), [200, 200, 429, 429])
            self.assertEqual(proxy.dry_run("dry")["seen"], 2)

    def test_O57_a_dry_run_beside_a_limit_has_no_effect(self):
        real = {"real": {"max": 3, "interval": HOUR, "policy": "fixed", "headers": True}}
        dry = {"dry": {"max": 1, "interval": HOUR, "policy": "fixed", "dry_run": True}}

        def deed():
            got = []
            for limits in (real, {**dry, **real}, {**real, **dry}):
                with Upstream() as app, Proxy(site(app.port, limits)) as proxy:
                    answers = [proxy.ask() for _ in range(5)]
                    got.append([(answer.status, quota(answer)) for answer in answers])
                    if "dry" in limits:
                        # A limit before it stops what it refuses; one behind it does not.
                        expected = 4 if list(limits)[0] == "dry" else 2
                        self.assertEqual(proxy.dry_run("dry")["seen"], expected)
            self.assertEqual(got[0], [(200, (3, 2)), (200, (3, 1)), (200, (3, 0)), (429, (3, 0)),
                                      (429, (3, 0))])
            self.assertEqual(got[1:], [got[0]] * 2)
        in_one_window(3600, deed)


V2 = b"\r\n\r\n\0\r\nQUIT\n"


def v2(command=0x21, family=0x11, body=bytes([192, 0, 2, 1, 192, 0, 2, 2, 0, 0x7b, 0x16, 0x2e])):
    return V2 + bytes([command, family]) + len(body).to_bytes(2, "big") + body


class ProxyProtocol(unittest.TestCase):
    REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    PREFACED = {"web": {"proxy_protocol": True}}

    def asked(self, header, source="127.0.0.1", rest=REQUEST, one_by_one=False):
        """The address that was counted and the one that was passed on, or `closed`."""
        with Upstream() as app, Proxy(site(app.port, servers=self.PREFACED, basic={
                "trusted_proxies": ["127.0.0.1"], "access_log": "{folder}/access.log",
                "access_log_client": True,
                "header_timeout": "20s" if rest else "300ms"})) as proxy:
            with proxy.connect(source) as client:
                try:
                    for piece in ([bytes([byte]) for byte in header] if one_by_one else [header]):
                        client.send(piece)
                    client.send(rest)
                    got = client.until(b"\r\n\r\n")
                except (ConnectionResetError, BrokenPipeError):
                    got = None
            if got is None:
                self.assertEqual(app.links, [])
                return "closed"
            self.assertTrue(got.startswith(b"HTTP/1.1 200"), got)
            [request] = app.seen
            return proxy.access(1)[0][-1], request.fields.one("X-Forwarded-For")

    def test_PP1_to_PP10_a_trusted_peer_says_who_is_calling(self):
        tlv = bytes([192, 0, 2, 1, 192, 0, 2, 2, 0, 0x7b, 0x16, 0x2e])
        rows = [
            ("PP1", b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n", ("192.0.2.1", "192.0.2.1")),
            ("PP2", b"PROXY TCP6 2001:Db8::1 2001:db8::2 123 5678\r\n",
             ("2001:db8::/64", "2001:db8::1")),
            ("PP3", b"PROXY UNKNOWN\r\n", ("127.0.0.1", "127.0.0.1")),
            ("PP3", b"PROXY UNKNOWN 1 2 3 4 5 6\r\n", ("127.0.0.1", "127.0.0.1")),
            ("PP4", v2(), ("192.0.2.1", "192.0.2.1")),
            ("PP5", v2(body=tlv + b"\x04\0\x06abcdef"), ("192.0.2.1", "192.0.2.1")),
            ("PP6", v2(command=0x20), ("127.0.0.1", "127.0.0.1")),
            ("PP7", v2(family=0x41, body=b"abcd"), ("127.0.0.1", "127.0.0.1")),
            ("PP8", b"PROXY FOO 192.0.2.1 192.0.2.2 123 5678\r\n", "closed"),
            ("PP9", v2(body=tlv + b"\x04\0\x0a12345"), "closed"),
            ("PP10", v2(body=tlv + b"\x04\0\x06abcde"), "closed"),
            ("no header", b"", "closed"),
        ]
        for name, header, expected in rows:
            with self.subTest(name):
                self.assertEqual(self.asked(header), expected)

    def test_addresses_of_one_IPv6_network_share_a_budget(self):
        with Upstream() as app, Proxy(site(
                app.port, {"ip": {"max": 1, "interval": HOUR}}, servers=self.PREFACED,
                basic={"trusted_proxies": ["127.0.0.1"]})) as proxy:
            got = []
            for who in (b"2001:db8::1", b"2001:db8::2", b"2001:db8:0:1::1"):
                with proxy.connect() as client:
                    client.send(b"PROXY TCP6 " + who + b" 2001:db8::9 123 5678\r\n")
                    got.append(client.ask().status)
            self.assertEqual(got, [200, 429, 200])

    def test_PP11_a_header_from_a_stranger_closes_the_connection(self):
        for header in (b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n", v2(), b""):
            self.assertEqual(self.asked(header, source="127.0.0.2"), "closed")

    def test_PP11_where_no_header_is_expected_it_is_no_request(self):
        with Upstream() as app, Proxy(site(app.port, basic={
                "trusted_proxies": ["127.0.0.1"]})) as proxy:
            for header in (b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n", v2()):
                with proxy.connect() as client:
                    client.send(header + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    self.assertEqual(client.answer().status, 400)
                    self.assertTrue(client.closed())
            self.assertEqual(app.links, [])

    def test_PP11_a_header_may_come_byte_by_byte_and_a_part_of_one_is_waited_for_no_longer(self):
        self.assertEqual(self.asked(v2(), one_by_one=True), ("192.0.2.1", "192.0.2.1"))
        line = b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n"
        self.assertEqual(self.asked(line, one_by_one=True), ("192.0.2.1", "192.0.2.1"))
        for part in (line[:-1], line[:8], v2()[:11], v2()[:-1]):
            self.assertEqual(self.asked(part, rest=b""), "closed")

    def test_PP11_whom_a_trusted_peer_names_is_a_stranger_itself(self):
        with Upstream() as app, Proxy(site(
                app.port, {"ip": {"max": 1, "interval": HOUR}},
                servers={"web": {"proxy_protocol": True}},
                basic={"trusted_proxies": ["127.0.0.1"]})) as proxy:
            got = []
            for n in range(3):
                with proxy.connect() as client:
                    client.send(b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n")
                    got.append(client.ask(fields=[("X-Forwarded-For", f"203.0.113.{n}")]).status)
            self.assertEqual(got, [200, 429, 429])
            self.assertEqual(app.seen[0].fields.all("X-Forwarded-For"), ["192.0.2.1"])


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory(prefix="weir-proxy-")
        cls.folder = cls.made.name
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", cls.folder + "/key.pem", "-out", cls.folder + "/cert.pem"],
                       check=True, capture_output=True, timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def server(self, **more):
        return {"web": {"tls_cert": self.folder + "/cert.pem", "tls_key": self.folder + "/key.pem",
                        **more}}

    def wrap(self, sock):
        return ssl.create_default_context(cafile=self.folder + "/cert.pem").wrap_socket(
            sock, server_hostname="127.0.0.1")

    def test_curl_is_served_and_limited_over_https(self):
        with Upstream() as app, Proxy(site(app.port, {"ip": {"max": 3, "interval": HOUR}},
                                           servers=self.server())) as proxy:
            got = [subprocess.run(
                ["curl", "--silent", "--show-error", "--cacert", self.folder + "/cert.pem",
                 "--max-time", "20", "--write-out", "%{http_code}", "--output", "/dev/null",
                 f"https://127.0.0.1:{proxy.port}/"], capture_output=True, text=True,
                check=True, timeout=30).stdout for _ in range(5)]
            self.assertEqual(got, ["200", "200", "200", "429", "429"])
            self.assertEqual(app.seen[0].fields.one("X-Forwarded-Proto"), "https")

    def test_a_connection_is_kept_and_large_bodies_go_both_ways(self):
        body = os.urandom(3_000_000)
        with Upstream({"/echo": lambda request, _: reply(body=body)}) as app, \
                Proxy(site(app.port, servers=self.server())) as proxy, \
                Client(proxy.at["web"], wrap=self.wrap) as client:
            for _ in range(3):
                answer = client.ask("/echo", "POST", body=body)
                self.assertTrue((answer.status, answer.body) == (200, body))
            for request in app.seen:
                self.assertEqual(request.size, len(body))

    def test_the_PROXY_header_comes_before_TLS(self):
        with Upstream() as app, Proxy(site(
                app.port, {"ip": {"max": 1, "interval": HOUR}},
                servers=self.server(proxy_protocol=True),
                basic={"trusted_proxies": ["127.0.0.1"]})) as proxy:
            got = []
            for who in (1, 1, 2):
                def wrap(sock):
                    sock.sendall(b"PROXY TCP4 192.0.2.%d 192.0.2.9 123 5678\r\n" % who)
                    return self.wrap(sock)
                with Client(proxy.at["web"], wrap=wrap) as client:
                    got.append(client.ask().status)
            self.assertEqual(got, [200, 429, 200])

    def test_who_says_nothing_to_a_TLS_server_is_not_waited_for(self):
        with Upstream() as app, Proxy(site(app.port, servers=self.server(), basic={
                "header_timeout": "300ms"})) as proxy, proxy.connect() as client:
            start = time.monotonic()
            self.assertTrue(client.closed())
            self.assertLess(time.monotonic() - start, 5)

    def test_plain_words_to_a_TLS_server_end_the_connection_and_nothing_else(self):
        with Upstream() as app, Proxy(site(app.port, servers=self.server())) as proxy:
            with proxy.connect() as client:
                client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertNotIn(b"HTTP/1.1 200", client.rest())
            with Client(proxy.at["web"], wrap=self.wrap) as client:
                self.assertEqual(client.ask().status, 200)


class Process(unittest.TestCase):
    def test_an_exchange_under_way_ends_before_the_program_does(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app, Proxy(site(app.port)) as proxy, \
                proxy.connect() as slow, proxy.connect() as idle:
            self.assertEqual(idle.ask().status, 200)
            slow.request("/slow")
            gate.hold(1)
            proxy.process.send_signal(signal.SIGTERM)
            self.assertTrue(idle.closed())
            gate.opened.set()
            answer = slow.answer()
            self.assertEqual((answer.status, answer.body), (200, b"ok\n"))
            self.assertEqual(proxy.process.wait(timeout=PATIENCE), 0)

    def test_an_exchange_that_does_not_end_is_cut_after_shutdown_timeout(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app, \
                Proxy(site(app.port, basic={"shutdown_timeout": "300ms"})) as proxy, \
                proxy.connect() as slow:
            slow.request("/slow")
            gate.hold(1)
            start = time.monotonic()
            self.assertEqual(proxy.stop(signal.SIGINT), 0)
            self.assertLess(time.monotonic() - start, 5)
            gate.opened.set()

    def test_the_access_log_has_no_word_of_a_person_unless_it_is_asked_for(self):
        for wanted in (False, True):
            with Upstream() as app, \
                    Proxy(site(app.port, {"ip": {"max": 1, "interval": HOUR}}, basic={
                    **ONE, "access_log": "{folder}/access.log",
                    "access_log_client": wanted})) as proxy:
                for _ in range(2):
                    proxy.ask("/secret/path?token=secret", fields=[("User-Agent", "secret")])
                lines = proxy.access(2)
                self.assertEqual([line[1:5] for line in lines],
                                 [["GET", "api", "200", "3"], ["GET", "api", "429", "30"]])
                self.assertNotIn("secret", str(lines))
                self.assertEqual("127.0.0.1" in str(lines), wanted)

    def test_more_clients_than_max_connections_are_not_let_in(self):
        with Upstream() as app, \
                Proxy(site(app.port, basic={"max_connections": 3, **ONE})) as proxy:
            clients = [proxy.connect() for _ in range(3)]
            self.assertEqual([client.ask().status for client in clients], [200] * 3)
            with proxy.connect() as one_more:
                self.assertIn(one_more.rest(), (b"", b"<reset>"))
            for client in clients:
                self.assertEqual(client.ask().status, 200)
                client.sock.close()
            until(lambda: proxy.status()["connections"] <= 1)
            self.assertEqual(proxy.ask().status, 200)

    def test_the_page_of_figures_counts_what_was_done(self):
        with Upstream() as app, Proxy(site(app.port, {"ip": {"max": 3, "interval": HOUR}}, basic={
                "threads": 3})) as proxy:
            statuses(proxy, 5)
            until(lambda: proxy.status()["connections"] == 1, what="only the asker is there")
            page = proxy.status()
            self.assertEqual((page["requests"], page["answered_by_plugins"], page["permits_held"],
                              page["cache_hits"], page["upstream_failures"]), (5, 2, 0, 0, 0))
            [upstream] = page["upstreams"]
            self.assertEqual((upstream["requests"], upstream["failures"]), (3, 0))
            self.assertEqual([each["name"] for each in page["plugins"]], ["ip"])

    def test_of_several_origins_one_that_is_away_is_passed_over(self):
        with Upstream() as app, Proxy(site([f"127.0.0.1:{refused_port()}",
                                            f"127.0.0.1:{app.port}"])) as proxy:
            self.assertEqual(statuses(proxy, 6), [200] * 6)
            self.assertEqual(proxy.ask(method="POST", body=b"x").status, 200)
            away, there = sorted(proxy.status()["upstreams"], key=lambda one: one["requests"])
            self.assertEqual((away["requests"], there["requests"]), (0, 7))
            self.assertGreater(away["failures"], 0)


if __name__ == "__main__":
    proxied.PROGRAM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

# SPDX-License-Identifier: BSL-1.0
"""proxy_reload.test.py PROGRAM: what weir-proxy says about its configuration, and what a reload
changes while it runs. Row numbers are those of the tables of cases."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import proxied
from proxied import PATIENCE, Gate, Proxy, Upstream, check, in_one_window, reply, site, toml

HOUR = "1h"
FRAME = site(5000, locations={"api": {"plugins": ["one"]}})


def plugin(lines, before=FRAME):
    """A good configuration but for the lines of its one plugin, and the number of the first."""
    text = before + "[plugins.one]\n"
    return text + "\n".join(lines) + "\n", text.count("\n") + 1


def limit(*lines):
    return plugin(['category = "limit"', *lines])


class Checking(unittest.TestCase):
    def assert_wrong(self, text, line, column, words, table="plugins.one"):
        code, told, printed = check(text)
        self.assertEqual((code, printed), (2, ""), told)
        where = f"weir.toml:{line}:{column}: {table}: " if table else f"weir.toml:{line}:{column}: "
        self.assertIn(f"ERROR weir-proxy: {where}{words}", told)

    def test_a_good_file_ends_with_0_and_says_what_each_plugin_is(self):
        code, told, printed = check(site(5000, {
            "perIp": {"max": 600, "interval": "60s"},
            "rough": {"max": 10, "store": "sketch"},
            "atOnce": {"type": "inflight", "tag": "cookie", "key": "deviceId", "max": 10,
                       "step": "proxy_upstream", "dry_run": True},
            "agents": {"category": "ua_restriction", "type": "deny", "ua_list": ["curl"]}}))
        self.assertEqual((code, told), (0, ""))
        lines = printed.splitlines()
        self.assertEqual(lines[-1], "the configuration is good")
        for line, words in zip(lines, (
                "plugins.perIp  limit: 600 in 1m by ip", "plugins.rough  limit: 10 in 10s by ip",
                "plugins.atOnce  limit: 10 at once by cookie deviceId",
                "plugins.agents  ua_restriction")):
            self.assertTrue(line.startswith(words), line)
        # The error of the sketch by the number of keys: P62.
        self.assertIn("1000: 15.1 %", lines[1])
        self.assertIn("dry run", lines[2])
        for line in lines[:3]:
            self.assertRegex(line, r"; [1-9]\d{4,} bytes$")

    def test_a_call_that_is_none_and_a_file_that_cannot_be_read_end_with_2(self):
        for words in (["-t"], ["a", "b"], ["-x", "a"], ["-t", "/nowhere/at/all.toml"],
                      ["/nowhere/at/all.toml"], ["/"]):
            done = subprocess.run([proxied.PROGRAM, *words], capture_output=True, text=True,
                                  timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertNotEqual(done.stderr, "")
            self.assertNotIn("[servers.NAME]", done.stderr, "it is not known what is in the file")

    def test_a_port_in_use_is_told_and_ends_with_1(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy, \
                tempfile.TemporaryDirectory(prefix="weir-proxy-") as folder:
            with open(folder + "/weir.toml", "w", encoding="utf-8") as file:
                file.write(site(app.port, servers={"web": {"addr": f"127.0.0.1:{proxy.port}"}}))
            done = subprocess.run([proxied.PROGRAM, folder + "/weir.toml"], capture_output=True,
                                  text=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"cannot listen at 127.0.0.1:{proxy.port}", done.stderr)

    def test_P01_to_P10_each_wrong_value_is_told_with_its_line_and_column(self):
        rows = [
            ("P01", ['type = "inflght"', "max = 1"], 1, 8,
             "Invalid type(inflght), expect rate or inflight"),
            ("P02", ['tag = "cookies"', "max = 1"], 1, 7, "Invalid tag(cookies), expect "),
            ("P03", ["max = 1", 'tag = "header"'], 2, 7,
             "key is required for a header, cookie or query tag"),
            ("P04", ['tag = "ip"'], None, 1, "max is required"),
            ("P04", ["max = -1"], 1, 7, "max must not be negative"),
            ("P05", ["max = 1", 'interval = "0s"'], 2, 12, "interval must be at least 1ms"),
            ("P05", ["max = 1", 'interval = "500us"'], 2, 12, "interval must be at least 1ms"),
            ("P06", ["max = 1", 'step = "response"'], 2, 8,
             "Invalid step(response), expect one of: request, proxy_upstream"),
            *(("P08", ["max = 1", f"status = {status}"], 2, 10,
               "status must be between 400 and 599")
              for status in (200, 302, 399, 600, -1, 70_000)),
            ("P10", ["max = 1", 'missing_key = "deny"'], 2, 15,
             "Invalid missing_key(deny), expect pass or reject"),
            ("P12", ['max = "100"'], 1, 7, 'max must be an integer, got string "100"'),
            ("P12", ["max = 1", "interval = 10"], 2, 12,
             "interval must be a string, got integer 10"),
            ("P12", ["max = 1", "headers = 1"], 2, 11,
             "headers must be true or false, got integer 1"),
            ("P12", ["max = 1", 'dry_run = "yes"'], 2, 11,
             'dry_run must be true or false, got string "yes"'),
        ]
        for name, lines, offset, column, words in rows:
            text, first = limit(*lines)
            if name == "P03":  # the key is not there, so the table is where it is missing
                offset, column = -1, 1
            with self.subTest(name, lines=lines):
                # The header of the table is the line before category.
                self.assert_wrong(text, first + (-1 if offset is None else offset), column, words)

    def test_O27_a_duration_is_read_whole_or_is_an_error_with_its_place(self):
        for wrong in ("1h30", "10mb", "1 month", "30x", "10", "", "-1s", "1.5h", "1e9s", " 5s",
                      "5S", "9999999999999999999s"):
            text, first = limit("max = 1", f'interval = "{wrong}"')
            with self.subTest(wrong):
                self.assert_wrong(text, first + 2, 12, "interval ")
            text = site(5000, basic={"idle_timeout": wrong})
            line = text[:text.index("idle_timeout")].count("\n") + 1
            with self.subTest(wrong + " of basic"):
                self.assert_wrong(text, line, 16, "idle_timeout ", "basic")
        for right, told in (("1m", "1m"), ("1ms", "1ms"), ("1h30m", "1h30m"), ("90s", "1m30s"),
                            ("5400s", "1h30m")):
            text, _ = limit("max = 1", f'interval = "{right}"')
            code, _, printed = check(text)
            self.assertEqual(code, 0, right)
            self.assertIn(f"1 in {told} by ip", printed)

    def test_names_of_tables_that_are_not_there_are_told(self):
        good = site(5000)
        rows = [
            (good.replace('plugins = []', 'plugins = ["a", "nope"]') +
             '[plugins.a]\ncategory = "limit"\nmax = 1\n', "plugins", "nope",
             "locations.api"),
            (good.replace('upstream = "app"', 'upstream = "nope"'), "upstream", "nope",
             "locations.api"),
            (good.replace('locations = ["api"]', 'locations = ["nope"]'), "locations", "nope",
             "servers.web"),
        ]
        for text, key, word, table in rows:
            line = text[:text.index('"nope"')].count("\n") + 1
            column = len(text[:text.index('"nope"')].rpartition("\n")[2]) + 1
            with self.subTest(key):
                self.assert_wrong(text, line, column, f"{key} ", table)
                self.assertIn(word, check(text)[1])

    def test_what_else_is_wrong_with_a_file_is_told_and_ends_with_2(self):
        good = site(5000)
        rows = [
            ("no TOML", good + "[plugins", "error"),
            ("a plugin without a category", good + "[plugins.a]\nmax = 1\n",
             "category is required"),
            ("a category nobody knows", good + '[plugins.a]\ncategory = "limits"\n', '"limits"'),
            ("no server", toml(upstreams={"app": {"addrs": ["127.0.0.1:5000"]}}), "[servers.NAME]"),
            ("a port that is none", good.replace("127.0.0.1:0", "127.0.0.1:65536"), "65536"),
            ("a list of proxies that has a name",
             site(5000, basic={"trusted_proxies": ["localhost"]}), '"localhost"'),
            ("a certificate that is not there", site(5000, servers={"web": {
                "tls_cert": "/nowhere/cert.pem", "tls_key": "/nowhere/key.pem"}}), "tls_cert"),
            ("half a certificate", site(5000, servers={"web": {"tls_cert": "/nowhere"}}),
             "tls_cert and tls_key go together"),
            ("two servers at one address", site(5000, servers={"web": {}, "other": {}}), "addr"),
            ("a pattern that is none", good + '[plugins.a]\ncategory = "ua_restriction"\n'
             'ua_list = ["("]\n', "ua_list"),
            ("a store nobody registered", good + '[plugins.a]\ncategory = "limit"\nmax = 1\n'
             'store = "nope"\n', "nope"),
            ("a path that is none", site(5000, path="api"), "path must begin with /"),
        ]
        for name, text, words in rows:
            code, told, printed = check(text)
            self.assertEqual((code, printed), (2, ""), name)
            self.assertIn("ERROR weir-proxy: weir.toml", told)
            self.assertIn(words, told.lower() if words == "error" else told, name)

    def test_all_that_is_wrong_is_told_at_once_in_the_order_of_the_file(self):
        text, first = limit('type = "x"', "max = -1", 'step = "y"')
        _, told, _ = check(text)
        lines = [int(match) for match in re.findall(r"weir\.toml:(\d+):", told)]
        self.assertEqual(lines, [first + 1, first + 2, first + 3])

    def test_P03_P13_what_has_no_effect_is_a_warning(self):
        text, first = limit("max = 5", 'key = "X"', "weight = 50", "wieght = 1")
        code, told, _ = check(text)
        self.assertEqual(code, 0)
        for line, words in ((2, "key is not read with tag"),
                            (3, "the weight of the limit plugin is no longer used: max is the "
                                "number of requests in any one interval"),
                            (4, '"wieght"')):
            place = rf"WARN weir-proxy: weir\.toml:{first + line}:\d+: plugins\.one: .*"
            self.assertRegex(told, place + re.escape(words))

    def test_P13_a_weight_changes_nothing(self):
        def deed():
            for weight in (0, 50, 100):
                with Upstream() as app, Proxy(site(app.port, {"one": {
                        "max": 5, "interval": "1m", "weight": weight}})) as proxy, \
                        proxy.connect() as client:
                    self.assertEqual([client.ask().status for _ in range(7)], [200] * 5 + [429] * 2)
        in_one_window(60, deed)


SEED = """
[plugins.rateLimit]
category = "limit"
type = "rate"
tag = "ip"
max = 600
interval = "60s"

[plugins.userInflight]
category = "limit"
type = "inflight"
tag = "cookie"
key = "deviceId"
max = 10

[plugins.upstreamGuard]
category = "limit"
type = "inflight"
tag = "header"
key = "X-API-Key"
max = 20
step = "proxy_upstream"

[plugins.perClientKind]
category = "limit"
type = "rate"
tag = "ja4"
max = 300
interval = "60s"
"""
EXAMPLES = ["rateLimit", "userInflight", "upstreamGuard", "perClientKind"]


class Examples(unittest.TestCase):
    """The four limits that the seed has as examples, as they are written there."""

    def proxy(self, app, *plugins, **more):
        return Proxy(site(app.port, basic={"threads": 1}, locations={"api": {
            "plugins": list(plugins), **more}}) + SEED)

    def test_they_load(self):
        code, _, printed = check(site(5000, locations={"api": {"plugins": EXAMPLES}}) + SEED)
        self.assertEqual(code, 0)
        for name in EXAMPLES:
            self.assertIn(f"plugins.{name}  limit: ", printed)

    def test_P16_600_requests_of_an_idle_client_pass_and_the_next_is_told_60_seconds(self):
        def deed():
            with Upstream() as app, self.proxy(app, *EXAMPLES) as proxy, proxy.connect() as client:
                self.assertEqual({client.ask().status for _ in range(600)}, {200})
                refused = client.ask()
                self.assertEqual((refused.status, refused.body, refused.fields.one("Retry-After")),
                                 (429, b"Plugin limit, exceed limit 601/600", "60"))
                self.assertEqual(proxy.ask(source="127.0.0.2").status, 200)
        in_one_window(60, deed)

    def assert_at_once(self, plugin, count, with_key, others, kept=()):
        gate = Gate()
        fresh = reply(fields=[("Cache-Control", "max-age=600")])
        with Upstream({"/slow": gate, "/kept": lambda *_: fresh}) as app, \
                self.proxy(app, plugin, cache=True) as proxy:
            proxy.ask("/kept", fields=with_key)
            clients = [proxy.connect() for _ in range(count)]
            for client in clients:
                client.request("/slow", fields=with_key)
            gate.hold(count)
            refused = proxy.ask(fields=with_key)
            self.assertEqual((refused.status, refused.body), (
                429, b"Plugin limit, exceed limit %d/%d" % (count + 1, count)))
            self.assertIsNone(refused.fields.one("Retry-After"))
            for fields in others:
                self.assertEqual(proxy.ask(fields=fields).status, 200)
            for target in kept:
                self.assertEqual(proxy.ask(target, fields=with_key).status, 200)
            gate.opened.set()
            for client in clients:
                self.assertEqual(client.answer().status, 200)
                client.sock.close()
            self.assertEqual(proxy.ask(fields=with_key).status, 200)

    def test_10_at_once_of_each_deviceId(self):
        self.assert_at_once("userInflight", 10, [("Cookie", "a=b; deviceId=1")],
                            [[("Cookie", "deviceId=2")], [("Cookie", "DEVICEID=1")], []])

    def test_20_at_once_of_each_X_API_Key_reach_the_upstream_and_hits_of_the_cache_are_free(self):
        self.assert_at_once("upstreamGuard", 20, [("x-api-key", "k")],
                            [[("X-API-Key", "K")], []], kept=["/kept", "/kept"])


class Reloading(unittest.TestCase):
    FIXED = {"max": 10, "interval": HOUR, "policy": "fixed"}

    def test_O40_what_is_spent_stays_spent(self):
        for policy in ("fixed", "sliding", "strict"):
            rule = {**self.FIXED, "policy": policy, "headers": True}

            def deed():
                with Upstream() as app, Proxy(site(app.port, {"ip": rule})) as proxy, \
                        proxy.connect() as client:
                    passed = sum(client.ask().status == 200 for _ in range(30))
                    self.assertEqual(client.ask().status, 429)
                    proxy.reload()
                    self.assertEqual(client.ask().status, 429)
                    self.assertEqual(proxy.ask().status, 429)
                    if policy != "strict":
                        self.assertEqual(passed, 10)
                    self.assertEqual(proxy.ask(source="127.0.0.2").status, 200)
            with self.subTest(policy):
                in_one_window(3600, deed)

    def test_O40_another_max_applies_at_once_to_what_is_counted(self):
        def deed():
            with Upstream() as app:
                texts = {n: site(app.port, {"ip": {**self.FIXED, "max": n}}) for n in (10, 20, 15)}
                with Proxy(texts[10]) as proxy, proxy.connect() as client:
                    def passed():
                        return sum(client.ask().status == 200 for _ in range(30))
                    self.assertEqual(passed(), 10)
                    proxy.reload(texts[20])
                    self.assertEqual(passed(), 10)
                    proxy.reload(texts[15])
                    self.assertEqual(passed(), 0)
                    proxy.reload(texts[20])
                    self.assertEqual(passed(), 0)
        in_one_window(3600, deed)

    def test_O40_1000_reloads_while_it_is_asked_give_no_unit_more(self):
        def deed():
            with Upstream() as app, Proxy(site(app.port, {"ip": self.FIXED, "dry": {
                    "max": 1, "dry_run": True}})) as proxy, proxy.connect() as client:
                got, ended, memory = [], threading.Event(), []

                def ask():
                    while not ended.is_set():
                        got.append(client.ask().status)
                asker = threading.Thread(target=ask)
                asker.start()
                try:
                    for n in range(1_000):
                        proxy.reload()
                        if n in (200, 999):
                            memory.append((proxy.most_memory(), proxy.descriptors()))
                finally:
                    ended.set()
                    asker.join(PATIENCE)
                self.assertEqual(got.count(200), 10)
                self.assertEqual(set(got), {200, 429})
                self.assertGreater(len(got), 1_000)
                self.assertEqual(proxy.told().count("INFO weir-proxy: reloaded"), 1_000)
                (before, files), (after, files_after) = memory
                self.assertLess(after - before, 4 << 20)
                self.assertEqual(files, files_after)
        in_one_window(3600, deed)

    def test_another_window_starts_afresh(self):
        with Upstream() as app, \
                Proxy(site(app.port, {"ip": {"max": 1, "interval": HOUR}})) as proxy:
            self.assertEqual([proxy.ask().status for _ in range(2)], [200, 429])
            proxy.reload(site(app.port, {"ip": {"max": 1, "interval": "2h"}}))
            self.assertEqual([proxy.ask().status for _ in range(2)], [200, 429])

    def test_places_that_are_held_are_counted_by_the_next_configuration(self):
        gate = Gate()
        with Upstream({"/slow": gate}) as app:
            one, two = (site(app.port, {"now": {"type": "inflight", "max": n}},
                             basic={"threads": 1}) for n in (1, 2))
            with Proxy(one) as proxy, proxy.connect() as slow:
                slow.request("/slow")
                gate.hold(1)
                proxy.reload()
                self.assertEqual(proxy.ask().status, 429)
                proxy.reload(two)
                self.assertEqual(proxy.ask().status, 200)
                proxy.reload(one)
                self.assertEqual(proxy.ask().status, 429)
                gate.opened.set()
                self.assertEqual(slow.answer().status, 200)
                self.assertEqual(proxy.ask().status, 200)
                self.assertEqual(proxy.status()["permits_held"], 0)

    def test_a_dry_run_can_be_switched_on(self):
        with Upstream() as app, Proxy(site(app.port, {"ip": {"max": 0, "dry_run": True}})) as proxy:
            self.assertEqual(proxy.ask().status, 200)
            proxy.reload(site(app.port, {"ip": {"max": 0}}))
            self.assertEqual(proxy.ask().status, 429)

    def test_a_connection_that_stays_open_meets_the_new_configuration_and_an_exchange_the_old(self):
        gate = Gate(reply(body=b"old\n"))
        with Upstream({"/slow": gate}) as old, \
                Upstream({"/": lambda *_: reply(body=b"new\n")}) as new, \
                Proxy(site(old.port)) as proxy, proxy.connect() as client, proxy.connect() as slow:
            self.assertEqual(client.ask().body, b"ok\n")
            slow.request("/slow")
            gate.hold(1)
            proxy.reload(site(new.port, {"ip": {"max": 1, "interval": HOUR, "headers": True}}))
            answer = client.ask()
            self.assertEqual((answer.body, answer.fields.one("X-RateLimit-Limit")), (b"new\n", "1"))
            gate.opened.set()
            answer = slow.answer()
            self.assertEqual((answer.body, answer.fields.one("X-RateLimit-Limit")),
                             (b"old\n", None))
            self.assertEqual(slow.ask().status, 429)

    def test_a_broken_file_changes_nothing_and_its_faults_are_told_with_their_places(self):
        with Upstream() as app:
            good = site(app.port, {"ip": {"max": 3, "interval": HOUR}})
            broken = [
                (good + "[plugins", r"weir\.toml:\d+:\d+: "),
                (good.replace("max = 3", "max = -3"),
                 r"weir\.toml:\d+:7: plugins\.ip: max must not"),
                (good.replace('interval = "1h"', 'interval = "1h30"'), r"weir\.toml:\d+:12: "),
                (good.replace('plugins = ["ip"]', 'plugins = ["nope"]'), r"weir\.toml:\d+:\d+: "),
                ("", r"weir\.toml"),
            ]
            with Proxy(good) as proxy, proxy.connect() as client:
                got = [client.ask().status]
                for text, pattern in broken:
                    told = proxy.hang_up("the configuration stays as it was", text)
                    self.assertRegex(told, "ERROR weir-proxy: .*" + pattern)
                    self.assertNotIn("reloaded", told)
                    got.append(client.ask().status)
                os.unlink(proxy.file)
                self.assertIn("cannot be read", proxy.hang_up("the configuration stays as it was"))
                got.append(proxy.ask().status)
                proxy.reload(good)
                got.append(proxy.ask().status)
                self.assertEqual(got, [200, 200, 200] + [429] * (len(got) - 3))

    def test_P03_P13_the_same_warnings_are_told_once_and_others_again(self):
        with Upstream() as app:
            def text(**more):
                return site(app.port, {"ip": {"max": 3, **more}})
            with Proxy(text(weight=50, key="x")) as proxy:
                self.assertEqual(len(proxy.lines("WARN")), 2)
                for _ in range(5):
                    proxy.reload()
                self.assertEqual(len(proxy.lines("WARN")), 2)
                proxy.reload(text(weight=50, key="x", wieght=1))
                self.assertIn('"wieght"', "".join(proxy.lines("WARN")))
                count = len(proxy.lines("WARN"))
                proxy.reload()
                self.assertEqual(len(proxy.lines("WARN")), count)

    def test_what_waits_for_a_restart_is_told(self):
        with Upstream() as app, Proxy(site(app.port)) as proxy:
            told = proxy.reload(site(app.port, basic={"threads": 3}, servers={
                "web": {}, "more": {"addr": "127.0.0.2:0"}}))
            self.assertIn("another basic.threads waits for a restart", told)
            self.assertIn("listening at 127.0.0.2:0 waits for a restart", told)
            self.assertEqual(proxy.ask().status, 200)


if __name__ == "__main__":
    proxied.PROGRAM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

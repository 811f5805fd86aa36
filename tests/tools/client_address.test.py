# SPDX-License-Identifier: BSL-1.0
"""weir-client-address as a process: client_address.test.py PATH-OF-THE-PROGRAM"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "vectors")
failures = []


def run(*arguments):
    done = subprocess.run([sys.argv[1], *arguments], capture_output=True, timeout=20)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check(claim, held, seen):
    if not held:
        failures.append(f"{claim}: {seen}")


def cell(text):
    if text == "<empty>":
        return b""
    return re.sub(rb"\\x([0-9A-Fa-f]{2})", lambda byte: bytes([int(byte[1], 16)]), text.encode())


def rows(name):
    with open(os.path.join(VECTORS, name), encoding="utf-8") as table:
        for line in table:
            if not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def the_rows_print_what_they_say():
    asked = 0
    for row, peer, trusted, hops, header, client, key, degraded, *lines in rows("client_address.tsv"):
        if peer in ("<empty>", "@", "garbage", "unknown"):  # on the command line a bad setting
            continue
        options = ["--peer", peer, "--hops", hops, "--header", header]
        if trusted != "-":
            options += ["--trust", trusted]
        code, out, err = run(*options, "--", *map(cell, lines))
        expected = [client, f"key {key}"] + ([] if degraded == "-" else [f"degraded {degraded}"])
        got = [line for line in out.splitlines() if not line.startswith("warning ")]
        check(f"row {row}", code == 0 and got == expected and err == "", (code, out, err))
        asked += 1
    check("the table has rows", asked > 150, asked)


def a_bad_setting_is_refused(*arguments, names):
    code, out, err = run(*arguments)
    one_line = err.count("\n") == 1 and err.endswith("\n")
    named = all(name in err for name in names)
    check(f"{arguments} is refused", code == 2 and out == "" and one_line and named, (code, out, err))


def bad_settings_are_refused():
    peer = ("--peer", "10.0.0.1")
    for row, entry in rows("trusted_errors.tsv"):
        text = cell(entry).decode()
        a_bad_setting_is_refused(*peer, "--trust", text, names=["--trust", f'"{text}"', "allowed"])
    for text in ("garbage", "", "@", "10.0.0.256", "unix2", "10.0.0.1\n"):
        a_bad_setting_is_refused("--peer", text, names=["--peer", "allowed"])
    for text in ("-999", "257", "1x", "", "99999999999"):
        a_bad_setting_is_refused(*peer, "--hops", text, names=["--hops", "is "])
    for text in ("0", "129", "-1", "64.5"):
        a_bad_setting_is_refused(*peer, "--prefix", text, names=["--prefix", "is "])
    a_bad_setting_is_refused(*peer, "--header", "X Real", names=["--header", '"X Real"', "allowed"])
    a_bad_setting_is_refused(*peer, "--header", "X-Real-IP", "--hops", "2", names=["--hops", "allowed"])
    a_bad_setting_is_refused(*peer, "--trust", "10.0.0.0/8,", names=["--trust", "trusted[1]"])
    a_bad_setting_is_refused(*peer, "--colour", "red", names=["--colour"])
    a_bad_setting_is_refused(*peer, "--hops", names=["--hops", "missing"])
    a_bad_setting_is_refused("--hops", "1", names=["--peer", "missing"])
    a_bad_setting_is_refused(names=["--peer", "missing"])


def warnings_are_printed_by_name():
    with open(os.path.join(HERE, "..", "..", "docs", "warnings.md"), encoding="utf-8") as page:
        sections = re.findall(r"^## (\w+)$", page.read(), re.M)
    for name, arguments in (
        ("hops_with_public_peer", ["--peer", "198.51.100.7", "--hops", "1", "9.9.9.9"]),
        ("forwarded_header_ignored", ["--peer", "198.51.100.7", "9.9.9.9"]),
        ("trust_covers_everything", ["--peer", "10.0.0.1", "--trust", "0.0.0.0/0"]),
    ):
        _, out, _ = run(*arguments)
        warned = re.findall(r"^warning (\w+) .{40,}$", out, re.M)
        check(f"{name} is warned about alone", warned == [name], out)
        check(f"{name} has a section in docs/warnings.md", name in sections, sections)
    _, out, _ = run("--peer", "10.0.0.1", "--hops", "1", "9.9.9.9")
    check("nothing is warned about without a reason", out == "9.9.9.9\nkey 9.9.9.9\n", out)


def the_rest():
    check("the prefix is taken", run("--peer", "2001:db8::1", "--prefix", "48")[1]
          == "2001:db8::1\nkey 2001:db8::/48\n", run("--peer", "2001:db8::1", "--prefix", "48"))
    check("ranges add up", run("--peer", "unix", "--trust", "unix", "--trust", "10.0.0.0/8", "9.9.9.9, 10.0.0.2")[1]
          == "9.9.9.9\nkey 9.9.9.9\n", "")
    check("a line may begin with two hyphens", run("--peer", "10.0.0.1", "--hops", "1", "--", "--peer")[1]
          == "10.0.0.1\nkey 10.0.0.1\ndegraded element_unreadable\n", "")
    check("--help is no error", run("--help")[0] == 0, run("--help"))


the_rows_print_what_they_say()
bad_settings_are_refused()
warnings_are_printed_by_name()
the_rest()
for failure in failures:
    print("FAILED", failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)

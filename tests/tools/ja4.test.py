# SPDX-License-Identifier: BSL-1.0
"""weir-ja4 as a process: ja4.test.py PATH-OF-THE-PROGRAM"""

import os
import subprocess
import sys

import hello

HELLOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "hellos")
OPTIONS = {"t": [], "d": ["--dtls"], "q": ["--quic"]}
failures = []


def run(data, *arguments):
    done = subprocess.run([sys.argv[1], *arguments], input=data, capture_output=True, timeout=20)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check(claim, held, seen):
    if not held:
        failures.append(f"{claim}: {seen}")


def rows():
    with open(os.path.join(HELLOS, "vectors.tsv"), encoding="utf-8") as table:
        next(table)
        for line in table:
            name, transport, _, ja4, stable, *_ = line.split("\t")
            with open(os.path.join(HELLOS, name), encoding="ascii") as file:
                yield name, transport, bytes.fromhex(file.read()), ja4, stable


def every_hello_has_its_lines():
    asked = 0
    for name, transport, message, ja4, stable in rows():
        expected = hello.fingerprints(message, transport)
        check(f"{name}: the slow calculation is that of the table",
              (expected["ja4"], expected["stable_key"]) == (ja4, stable), expected)
        lines = "".join(f"{key} {value}\n" for key, value in expected.items())
        spellings = {"bytes": message, "hexadecimal": message.hex().encode(),
                     "lines": message.hex(" ", 16).upper().replace(" ", "\r\n\t").encode() + b"\n"}
        if transport == "t":
            spellings["records"] = hello.records(message) + b"\x17\x03\x03\0\1x"
            spellings["small records"] = hello.records(message, 64).hex().encode()
        for spelling, data in spellings.items():
            check(f"{name} as {spelling}", run(data, *OPTIONS[transport]) == (0, lines, ""),
                  run(data, *OPTIONS[transport]))
            asked += 1
    check("all files were asked about", asked == 51 * 3 + 49 * 2, asked)


def what_has_none_says_why():
    _, _, message, *_ = next(row for row in rows() if row[0] == "go_nethttp-1.hex")
    _, _, dtls, *_ = next(row for row in rows() if row[1] == "d")
    cut = bytearray(message)
    cut[38] = 33
    for reason, data, *options in (
        ("empty", b""),
        ("empty", b" \n"),
        ("incomplete", message[:-1]),
        ("incomplete", hello.records(message)[:-1]),
        ("incomplete", b"16 03 01"),
        ("malformed", bytes(cut)),
        ("malformed", hello.records(bytes(cut)).hex().encode()),
        ("not_client_hello", b"GET / HTTP/1.1\r\n\r\n"),
        ("not_client_hello", b"0x0100"),
        ("not_client_hello", b"010"),  # half a byte: no hexadecimal, and no hello
        ("not_client_hello", b"02000000"),
        ("not_client_hello", hello.records(message), "--quic"),
        ("not_tls", b"\x16\x02\x00\x00\x01\x01"),
        ("bad_record", b"1603010000"),
        ("too_long", b"\x01\x01\x00\x00"),
        ("too_long", b"0" * 1_100_000),
        ("fragmented", dtls[:6] + b"\0\0\1" + dtls[9:], "--dtls"),
    ):
        code, out, err = run(data, *options)
        check(f"{data[:20]} is none", (code, out, err) == (1, f"none {reason}\n", ""), (code, out, err))


def options_are_checked():
    for arguments in (["--tls"], ["--dtls", "--quic"], ["--quic", "x"], [""]):
        code, out, err = run(b"", *arguments)
        check(f"{arguments} is refused", code == 2 and out == "" and "usage:" in err, (code, out, err))
    code, out, _ = run(b"", "--help")
    check("--help is no error", code == 0 and out.startswith("usage: weir-ja4"), (code, out))


every_hello_has_its_lines()
what_has_none_says_why()
options_are_checked()
for failure in failures:
    print("FAILED", failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)

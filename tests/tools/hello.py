# SPDX-License-Identifier: BSL-1.0
"""A ClientHello and its fingerprints, read from bytes by nothing of Weir's."""

import hashlib
import string

VERSIONS = {"0304": "13", "0303": "12", "0302": "11", "0301": "10", "0300": "s3", "0002": "s2",
            "feff": "d1", "fefd": "d2", "fefc": "d3"}
GREASE = {f"{n:x}a{n:x}a" for n in range(16)}
COME_AND_GO = {"0015", "0023", "0029", "002a"}


def records(message, most=16384):
    parts = [message[at:at + most] for at in range(0, len(message), most)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


def message_in(stream):
    """The first handshake message of a stream of records; None if it is not whole."""
    message = b""
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
        length = int.from_bytes(stream[3:5], "big")
        if stream[:1] != b"\x16" or len(stream) < 5 + length:
            return None
        message, stream = message + stream[5:5 + length], stream[5 + length:]
    return message[:4 + int.from_bytes(message[1:4], "big")]


def codes(data):
    found = [data[at:at + 2].hex() for at in range(0, len(data), 2)]
    return [code for code in found if code not in GREASE]


def block(data, width):
    end = width + int.from_bytes(data[:width], "big")
    return data[width:end], data[end:]


def extensions_of(data):
    found = []
    while data:
        code = data[:2].hex()
        content, data = block(data[2:], 2)
        found.append((code, content))
    return [(code, content) for code, content in found if code not in GREASE]


def protocol_of(names):
    first = block(names, 1)[0] if names else b""
    if not first:
        return "00"
    ends = chr(first[0]) + chr(first[-1])
    plain = string.ascii_letters + string.digits
    return ends if ends[0] in plain and ends[1] in plain else first.hex()[0] + first.hex()[-1]


def fingerprints(message, transport="t"):
    """The lines that weir-ja4 prints, as a dict."""
    body = message[12 if transport == "d" else 4:]
    legacy, body = body[:2].hex(), block(body[34:], 1)[1]
    if transport == "d":
        body = block(body, 1)[1]
    ciphers, body = block(body, 2)
    ciphers, body = codes(ciphers), block(body, 1)[1]
    extensions = extensions_of(block(body, 2)[0])
    known = dict(reversed(extensions))
    version = legacy
    if "002b" in known:
        offered = sorted(codes(known["002b"][1:]), reverse=transport == "d")
        version = offered[-1] if offered else ""
    signatures = codes(known.get("000d", b"")[2:])

    def form(counted, ordered, shown):
        kept = [code for code, _ in counted]
        outline = (transport + VERSIONS.get(version, "00") + ("d" if "0000" in known else "i")
                   + f"{min(len(ciphers), 99):02}{min(len(kept), 99):02}"
                   + protocol_of(known.get("0010", b"")[2:]))
        if ordered is sorted:
            kept = [code for code in kept if code not in ("0000", "0010")]
        behind = ",".join(ordered(kept)) + ("_" + ",".join(signatures) if signatures else "")
        return "_".join((outline, shown(",".join(ordered(ciphers))), shown(behind)))

    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "0" * 12

    stable = [one for one in extensions if one[0] not in COME_AND_GO]
    return {"ja4": form(extensions, sorted, digest), "ja4_r": form(extensions, sorted, str),
            "ja4_o": form(extensions, list, digest), "ja4_ro": form(extensions, list, str),
            "stable_key": form(stable, sorted, digest)}

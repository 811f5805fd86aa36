# SPDX-License-Identifier: BSL-1.0
"""The token that tests/unit/forms/render_token.test.cpp and the corpus of the fuzz target have in
them, made a second time: prints it.
"""

import base64
import hashlib
import hmac
import struct

SECRET = b"a secret of thirty-two bytes...."
AT = 20_458 * 86_400 * 10**9


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


signed = struct.pack(">BQ", 1, AT) + bytes(range(16))
subject = b"".join(struct.pack(">Q", len(part)) + part for part in (b"apply", b"198.51.100.4"))
key = mac(SECRET, b"weir render token 1 form")
print(base64.urlsafe_b64encode(signed + mac(key, signed + subject)).decode())

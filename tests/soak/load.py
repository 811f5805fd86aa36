# SPDX-License-Identifier: BSL-1.0
"""The clients of tests/soak/run: submissions under Zipf-distributed addresses of which one in ten was
never seen before, a part of them with idempotency keys and sent again, and some that ask for
something else or walk off. What each was told is a line of JSON in the log (Attempt).
"""

import asyncio
import collections
import contextlib
import itertools
import json
import time

CONNECTIONS = 32
KNOWN = 1_000          # addresses that come again
NEVER_SEEN = 0.1       # of all attempts
PATIENCE = 10          # seconds, after which a client gives up
ENDPOINTS = {"contact": 6, "orders": 3, "jobs": 1}  # and how often each is chosen

# Instants are nanoseconds since 1970 by the clock of this host, which is the database's too. `status`
# is None if no answer came, `walked` if the client did not wait for it.
Attempt = collections.namedtuple("Attempt", "kind server endpoint source nonce key start end status "
                                 "code scope retry id received replayed walked")


class Refused(Exception):
    """Nobody listens, so nothing was asked."""


class Load:
    def __init__(self, servers, rng, rate, token, log):
        self.servers, self.rng, self.rate, self.log = servers, rng, rate, log
        self.token = token
        self.weights = list(itertools.accumulate(1 / n ** 1.1 for n in range(1, KNOWN + 1)))
        self.nonces = itertools.count(1)
        self.again = collections.deque()  # (not before, attempt, tries left)
        self.asked = 0

    async def run(self, ends):
        """Until then; all connections are closed afterwards."""
        await asyncio.gather(*[self.client(ends) for _ in range(CONNECTIONS)])

    async def client(self, ends):
        while time.time() < ends:
            server = self.rng.randrange(len(self.servers))
            with contextlib.suppress(Refused):
                await self.connection(server, self.rng.randrange(1, 100), ends)
            await self.pause()

    async def connection(self, server, requests, ends):
        """So many requests, or as many as there are answers to."""
        try:
            streams = await asyncio.open_connection("127.0.0.1", self.servers[server].port)
        except OSError:
            raise Refused from None
        try:
            for _ in range(requests):
                if time.time() >= ends or not await self.attempt(server, *streams):
                    return
                await self.pause()
        finally:
            streams[1].close()
            with contextlib.suppress(OSError):
                await streams[1].wait_closed()

    async def pause(self):
        await asyncio.sleep(self.rng.expovariate(self.rate / CONNECTIONS))

    # ---------------------------------------------------------------------------- what is asked

    def source(self):
        if self.rng.random() < NEVER_SEEN:
            made = next(self.nonces)
            return f"11.{made >> 16 & 255}.{made >> 8 & 255}.{made & 255}"
        known = self.rng.choices(range(KNOWN), cum_weights=self.weights)[0]
        return f"10.0.{known >> 8}.{known & 255}"

    def choose(self):
        """The attempt without its answer, and how often it may be sent again."""
        if self.again and self.again[0][0] <= time.time():
            _, before, tries = self.again.popleft()
            return before, tries
        chance = self.rng.random()
        endpoint = self.rng.choices(list(ENDPOINTS), list(ENDPOINTS.values()))[0]
        made = Attempt("submission", 0, endpoint, self.source(), str(next(self.nonces)),
                       *[None] * 11)
        if chance < 0.03:
            return made._replace(kind="health"), 0
        if chance < 0.06:
            return made._replace(kind="page"), 0
        if chance < 0.08:
            return made._replace(kind="management"), 0
        if chance < 0.10:
            return made._replace(kind="invalid"), 0
        if chance < 0.40:
            return made._replace(key=f"key-of-attempt-{made.nonce}"), 4
        return made, 0

    def request(self, of):
        if of.kind == "health":
            return b"GET /health HTTP/1.1\r\nHost: soak\r\n\r\n"
        if of.kind == "page":
            return f"GET /f/{of.endpoint} HTTP/1.1\r\nHost: soak\r\n\r\n".encode()
        if of.kind == "management":
            return (f"GET /api/endpoints/{of.endpoint}/submissions?limit=5 HTTP/1.1\r\nHost: soak\r\n"
                    f"Authorization: Bearer {self.token}\r\n\r\n").encode()
        body = f"n={of.nonce}&message=Good+morning" if of.kind == "submission" else "=%zz"
        key = f"Idempotency-Key: {of.key}\r\n" if of.key else ""
        return (f"POST /f/{of.endpoint} HTTP/1.1\r\nHost: soak\r\n{key}"
                f"X-Forwarded-For: {of.source}\r\nContent-Length: {len(body)}\r\n"
                f"Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}").encode()

    # ---------------------------------------------------------------------------- what is told

    async def attempt(self, server, reader, writer):
        """Whether the connection can be used again."""
        made, tries = self.choose()
        walked = self.rng.random() < 0.005
        made = made._replace(server=server, start=time.time_ns(), walked=walked)
        self.asked += 1
        try:
            writer.write(self.request(made))
            status, headers, body = None, {}, b""
            if not walked:
                status, headers, body = await asyncio.wait_for(answer(reader), PATIENCE)
        except (OSError, EOFError, asyncio.TimeoutError, ValueError):
            status = None
        made = told(made._replace(end=time.time_ns(), status=status), headers, body)
        self.log.write(json.dumps(made) + "\n")
        unsure = status in (None, 503)
        if tries and (unsure or self.rng.random() < 0.2):
            self.again.append((time.time() + 0.3, made, tries - 1))
        return status is not None and headers.get("connection") != "close"


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip()
               for name, _, value in (line.partition(":") for line in head[1:])}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(head[0].split()[1]), headers, body


def told(made, headers, body):
    retry = headers.get("retry-after")
    made = made._replace(code=None, scope=None, id=None, received=None, replayed=None,
                         retry=None if retry is None else int(retry))
    if made.status is None or made.kind in ("page", "management") and made.status == 200:
        return made
    said = json.loads(body) if body else {}  # a place taken: no body
    if made.status == 202:
        return made._replace(id=said["submission_id"], received=said["received_at"],
                             replayed=said["idempotent_replay"])
    error = said.get("error", {})
    return made._replace(code=error.get("code"), scope=(error.get("details") or {}).get("scope"))

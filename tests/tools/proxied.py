# SPDX-License-Identifier: BSL-1.0
"""weir-proxy as a process, clients that write what they like, and upstreams that record all of it.

Nothing here waits without a limit: a socket for PATIENCE seconds, a condition for as long.
"""

import collections
import functools
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

PATIENCE = 20
PROGRAM = ""  # set by each test file from its first argument

Answer = collections.namedtuple("Answer", "status fields body interim")


def until(claim, seconds=PATIENCE, what="it"):
    """What `claim` returns once that is true."""
    deadline = time.monotonic() + seconds
    while True:
        found = claim()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} has not come true within {seconds} s: {found!r}")
        time.sleep(0.002)


def in_one_window(seconds, deed, tries=3):
    """Does the deed again if a window of that length turned under it."""
    for _ in range(tries):
        before = int(time.time() / seconds)
        try:
            done = deed()
        except AssertionError:
            if int(time.time() / seconds) == before:
                raise
            continue
        if int(time.time() / seconds) == before:
            return done
    raise AssertionError(f"it never took less than {seconds} s")


class Fields(list):
    """Pairs of name and value, as they came."""

    def all(self, name):
        return [value for key, value in self if key.lower() == name.lower()]

    def one(self, name):
        found = self.all(name)
        assert len(found) < 2, f"{name} came {len(found)} times"
        return found[0] if found else None

    def names(self):
        return {key.lower() for key, _ in self}


def read_fields(lines):
    fields = Fields()
    for line in lines:
        name, _, value = line.partition(":")
        fields.append((name, value.strip()))
    return fields


# ---- configuration


def toml_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(each) for each in value) + "]"
    return json.dumps(value)


def toml_table(name, values):
    return "".join([f"[{name}]\n", *(f"{key} = {toml_value(value)}\n"
                                     for key, value in values.items()), "\n"])


def toml(**kinds):
    """toml(plugins={"a": {...}}, basic={...}): tables of tables, and `basic`, which is one."""
    return "".join(
        toml_table(kind, tables) if kind == "basic" else
        "".join(toml_table(f"{kind}.{name}", values) for name, values in tables.items())
        for kind, tables in kinds.items())


def site(upstream, plugins=None, *, basic=None, locations=None, servers=None, up=None, **location):
    """One server, one location with all plugins in their order, one upstream: unless said."""
    plugins = plugins or {}
    named = {name: {"category": "limit", **values} for name, values in plugins.items()}
    addrs = upstream if isinstance(upstream, list) else [f"127.0.0.1:{upstream}"]
    locations = locations or {"api": {}}
    return toml(
        basic={"status": "127.0.0.3:0", "threads": 2, **(basic or {})},
        upstreams={"app": {"addrs": addrs, **(up or {})}},
        locations={name: {"path": "/", "upstream": "app", "plugins": list(plugins),
                          **location, **values} for name, values in locations.items()},
        servers={name: {"addr": "127.0.0.1:0", "locations": list(locations), **values}
                 for name, values in (servers or {"web": {}}).items()},
        plugins=named)


# ---- the program


@functools.cache
def sanitized():
    with open(PROGRAM, "rb") as file:
        program = file.read()
    return b"__asan_init" in program or b"__tsan_init" in program


class Proxy:
    """The program with a configuration, until the with block ends."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.made = tempfile.TemporaryDirectory(prefix="weir-proxy-")
        self.folder = self.made.name
        self.file = self.folder + "/weir.toml"
        self.write(self.text)
        self.errors = open(self.folder + "/stderr", "w+b")
        self.process = subprocess.Popen([PROGRAM, self.file], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        watch = threading.Timer(PATIENCE, self.process.kill)  # one that says nothing ends the wait
        watch.start()
        servers = self.text.count("[servers.") + self.text.count('\nstatus = "')
        lines = [self.process.stdout.readline() for _ in range(servers)]
        watch.cancel()
        self.at = {}
        for line in lines:
            if not line.startswith("listening "):
                self.process.kill()
                raise AssertionError(f"{line!r} is no address; {self.told()}")
            _, name, url = line.split()
            host, _, port = url.partition("://")[2].rpartition(":")
            self.at[name] = (host.strip("[]"), int(port))
        self.port = self.at["web"][1]
        return self

    def write(self, text):
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(text.replace("{folder}", self.folder))
        os.replace(self.file + ".new", self.file)

    def told(self):
        with open(self.folder + "/stderr", encoding="utf-8", errors="replace") as file:
            return file.read()

    def lines(self, word):
        return [line for line in self.told().splitlines() if word in line]

    def hang_up(self, expect, text=None):
        """Reloads, and returns what was told until the line that says how it went."""
        if text is not None:
            self.write(text)
        before = len(self.told())
        self.process.send_signal(signal.SIGHUP)
        until(lambda: expect in self.told()[before:], what=expect)
        return self.told()[before:]

    def reload(self, text=None):
        return self.hang_up("INFO weir-proxy: reloaded", text)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        self.made.cleanup()

    def connect(self, source="127.0.0.1", server="web"):
        return Client(self.at[server], source)

    def ask(self, target="/", method="GET", fields=(), body=b"", source="127.0.0.1", server="web"):
        with self.connect(source, server) as client:
            return client.ask(target, method, fields, body)

    def status(self):
        host, port = self.at["status"]
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
        try:
            connection.request("GET", "/")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def dry_run(self, plugin):
        [found] = [each for each in self.status()["dry_run"] if each["plugin"] == plugin]
        return found

    def access(self, lines):
        """The words of each line of the access log, once there are so many."""
        def read():
            with open(self.folder + "/access.log", encoding="utf-8") as file:
                found = file.read().splitlines()
            return found if len(found) >= lines else None
        return [line.split() for line in until(read, what="the access log")]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def most_memory(self):
        """In bytes: the largest resident set until now. 0 with a sanitizer in the program, which
        keeps what is freed."""
        if sanitized():
            return 0
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            [line] = [line for line in file if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024


def check(text):
    """-t of this text: exit code, what was told, what was printed."""
    with tempfile.TemporaryDirectory(prefix="weir-proxy-") as folder:
        with open(folder + "/weir.toml", "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([PROGRAM, "-t", folder + "/weir.toml"], capture_output=True,
                              text=True, timeout=PATIENCE)
        return done.returncode, done.stderr.replace(folder + "/", ""), done.stdout


# ---- clients


class Stream:
    """A socket and what was read of it and is not used yet."""

    def __init__(self, sock):
        self.sock, self.kept = sock, b""
        self.sock.settimeout(PATIENCE)

    def more(self):
        piece = self.sock.recv(262_144)
        self.kept += piece
        return bool(piece)

    def until(self, mark):
        """All up to and with the mark; None if the end comes first."""
        while mark not in self.kept:
            if not self.more():
                return None
        taken, _, self.kept = self.kept.partition(mark)
        return taken + mark

    def pieces(self, count):
        """`count` bytes as they come; fewer if the end comes first."""
        while count > 0 and (self.kept or self.more()):
            piece, self.kept = self.kept[:count], self.kept[count:]
            count -= len(piece)
            yield piece

    def chunks(self, trailers):
        """The content of chunks, and each trailer to the list; ends early where they do."""
        while True:
            line = self.until(b"\r\n")
            if line is None:
                trailers.append("<ended>")
                return
            size = int(line.partition(b";")[0], 16)
            if size == 0:
                break
            yield from self.pieces(size)
            self.until(b"\r\n")
        while (line := self.until(b"\r\n")) not in (None, b"\r\n"):
            trailers.append(line.decode("latin-1").strip())

    def rest(self):
        """All until the end; a reset is told by `<reset>`."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            self.kept += b"<reset>"
        taken, self.kept = self.kept, b""
        return taken

    def reset(self):
        """Closes it as a process that dies with bytes unread."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


class Client(Stream):
    def __init__(self, at, source="127.0.0.1", wrap=lambda sock: sock):
        super().__init__(wrap(socket.create_connection(at, PATIENCE, (source, 0))))

    def send(self, data):
        self.sock.sendall(data)

    def request(self, target="/", method="GET", fields=(), body=b""):
        lines = [f"{method} {target} HTTP/1.1", "Host: test.example",
                 *(f"{name}: {value}" for name, value in fields)]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def head(self):
        head = self.until(b"\r\n\r\n")
        assert head is not None, f"the connection ended before a response: {self.kept!r}"
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        assert first.startswith("HTTP/1.1 "), first
        return int(first.split()[1]), read_fields(lines)

    def answer(self, method="GET"):
        interim = []
        status, fields = self.head()
        while status < 200:
            interim.append((status, fields))
            status, fields = self.head()
        length, trailers = fields.one("Content-Length"), []
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif fields.one("Transfer-Encoding") == "chunked":
            body = b"".join(self.chunks(trailers))
            fields.extend(("trailer: " + line.partition(":")[0], line.partition(":")[2].strip())
                          for line in trailers)
        elif length is not None:
            body = b"".join(self.pieces(int(length)))
            assert len(body) == int(length), f"{len(body)} of {length} bytes came"
        else:
            body = self.rest()
        return Answer(status, fields, body, interim)

    def ask(self, target="/", method="GET", fields=(), body=b""):
        self.request(target, method, fields, body)
        return self.answer(method)

    def closed(self):
        """Whether the other side ends the connection, with nothing more said."""
        return self.rest() == b""


# ---- upstreams


class Request:
    """What the upstream got. `body` has the first mebibyte; `size` and `digest` tell of all."""

    def __init__(self, head, link):
        self.raw, self.link = head, link
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        self.method, self.target, self.version = first.split(" ")
        self.fields = read_fields(lines)
        self.body, self.size, self.digest, self.trailers = b"", 0, hashlib.sha256(), []
        self.complete = False

    def read_body(self, stream):
        length = int(self.fields.one("Content-Length") or 0)
        chunked = self.fields.one("Transfer-Encoding") == "chunked"
        for piece in stream.chunks(self.trailers) if chunked else stream.pieces(length):
            self.size += len(piece)
            self.digest.update(piece)
            if self.size <= 1 << 20:
                self.body += piece
        self.complete = "<ended>" not in self.trailers if chunked else self.size == length


class Link(Stream):
    """A connection of the upstream."""

    def __init__(self, sock, number):
        super().__init__(sock)
        self.number, self.taken = number, b""

    def more(self):
        before = len(self.kept)
        came = super().more()
        if len(self.taken) < 1 << 20:
            self.taken += self.kept[before:]
        return came

    def send(self, data):
        self.sock.sendall(data)


def reply(status=200, fields=(), body=b"ok\n"):
    lines = [f"HTTP/1.1 {status} Told", *(f"{name}: {value}" for name, value in fields),
             f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


class Upstream:
    """A server of threads. `on[path]` makes the answer of a request and its link: bytes, or None
    when it has seen to the link itself, which is closed then."""

    def __init__(self, on=None, greet=None):
        self.on, self.greet = on or {}, greet
        self.seen, self.links, self.lock = [], [], threading.Lock()

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.close()
        with self.lock:
            for link in self.links:
                try:
                    link.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is gone already

    def accept(self):
        while True:
            try:
                sock, _ = self.socket.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                link = Link(sock, len(self.links))
                self.links.append(link)
            threading.Thread(target=self.serve, args=(link,), daemon=True).start()

    def serve(self, link):
        try:
            with link:
                while self.serve_one(link):
                    pass
        except OSError:
            pass  # the proxy went: what was recorded says how far it came

    def serve_one(self, link):
        head = link.until(b"\r\n\r\n")
        if head is None:
            return False
        request = Request(head, link)
        with self.lock:
            self.seen.append(request)
        if self.greet:
            self.greet(request, link)
        if (request.fields.one("Expect") or "").lower() == "100-continue":
            link.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.read_body(link)
        if not request.complete:
            return False
        made = self.on.get(request.target.partition("?")[0], lambda *_: reply())(request, link)
        if made is None:
            return False
        link.send(made)
        return True

    def targets(self):
        with self.lock:
            return [request.target for request in self.seen]

    def taken(self):
        """All bytes that any link got, but for what was beyond a mebibyte of one."""
        with self.lock:
            return b"".join(link.taken for link in self.links)


class Gate:
    """Answers when it is opened: requests at it are under way."""

    def __init__(self, answer=None):
        self.answer, self.opened = answer or reply(), threading.Event()
        self.waiting, self.lock = 0, threading.Lock()

    def __call__(self, _request, _link):
        with self.lock:
            self.waiting += 1
        self.opened.wait(PATIENCE)
        return self.answer

    def hold(self, count):
        until(lambda: self.waiting == count, what=f"{count} requests at the gate")


def refused_port():
    """A port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

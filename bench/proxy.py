# SPDX-License-Identifier: BSL-1.0
"""proxy.py WEIR_PROXY: what limits cost in a reverse proxy, beside nginx, and whom they refuse
wrongly. bench/run proxy builds the program and starts this.

The same upstream for all (nginx that returns a small body), the same connections, one worker each,
in turn; the order is reversed after each round and a ratio is the median over the rounds. Figures
are CPU time of the proxy alone for one request, all that the system did for it among them. The
proxies have one core; wrk and the upstream, if there is another, that other one.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
SECONDS = 2
CONNECTIONS = 64
KEYS, HITS, MAX = 10_000, 5, 10

CORES = sorted(os.sched_getaffinity(0))
LOAD_CORE, PROXY_CORE = (CORES * 2)[:2]
AMPLE = 1_000_000_000

UPSTREAM = """
http {
    access_log off;
    keepalive_requests 1000000000;
    server {
        listen 127.0.0.1:PORT;
        location / { return 200 "what the upstream says: a small body\\n"; }
    }
}
"""

# As like weir-proxy as it can be: connections of both sides are kept, and the address is told.
NGINX = """
http {
    access_log off;
    keepalive_requests 1000000000;
    limit_req_zone $binary_remote_addr zone=per_ip:10m rate=1000000r/s;
    upstream app {
        server 127.0.0.1:UPSTREAM;
        keepalive 64;
        keepalive_requests 1000000000;
    }
    server {
        listen 127.0.0.1:PORT;
        location / {
            limit_req zone=per_ip burst=1000000 nodelay;
            proxy_pass http://app;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
        }
    }
}
"""

WEIR = f"""
[basic]
threads = 1
[upstreams.app]
addrs = ["127.0.0.1:UPSTREAM"]
[servers.web]
addr = "127.0.0.1:0"
locations = ["none", "one", "four", "exact", "sketch"]

[locations.none]
path = "/none"
upstream = "app"
[locations.one]
path = "/ones"
upstream = "app"
plugins = ["per_ip"]
[locations.four]
path = "/four"
upstream = "app"
plugins = ["per_ip", "per_key", "per_user", "at_once"]
[locations.exact]
path = "/exact"
upstream = "app"
plugins = ["exact"]
[locations.sketch]
path = "/sketch"
upstream = "app"
plugins = ["sketch"]

[plugins.per_ip]
category = "limit"
max = {AMPLE}
interval = "1m"
[plugins.per_key]
category = "limit"
tag = "header"
key = "X-Api-Key"
max = {AMPLE}
interval = "1m"
[plugins.per_user]
category = "limit"
tag = "query"
key = "user"
max = {AMPLE}
interval = "1m"
[plugins.at_once]
category = "limit"
type = "inflight"
max = 10_000

[plugins.exact]
category = "limit"
tag = "header"
key = "X-Api-Key"
max = {MAX}
interval = "24h"
[plugins.sketch]
category = "limit"
tag = "header"
key = "X-Api-Key"
max = {MAX}
interval = "24h"
store = "sketch"
"""


def cpu_clock(pid):
    """The clock of a process, all of its threads: in nanoseconds, where /proc counts ticks."""
    clock = ctypes.c_int()
    failed = ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
    if failed:
        raise OSError(failed, os.strerror(failed))
    return clock.value


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextlib.contextmanager
def started(command, core, **how):
    process = subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, {core}), **how)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextlib.contextmanager
def nginx(folder, core, text, **ports):
    """One process, not two: its clock is that of the work."""
    folder.mkdir()
    ports["PORT"] = free_port()
    for name, port in ports.items():
        text = text.replace(name, str(port))
    temporary = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    text = text.replace("http {\n", "http {\n" + temporary, 1)
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/log;\n"
        f"events {{ worker_connections 1024; }}\n{text}")
    command = ["nginx", "-p", str(folder), "-e", str(folder / "log"), "-c",
               str(folder / "nginx.conf")]
    with started(command, core) as process:
        for _ in range(100):
            with contextlib.suppress(OSError), \
                    socket.create_connection(("127.0.0.1", ports["PORT"])):
                break
            time.sleep(0.05)
        yield process, ports["PORT"]


class Side:
    """One proxy and one path of it."""

    def __init__(self, process, port, path):
        self.clock, self.url = cpu_clock(process.pid), f"http://127.0.0.1:{port}{path}"
        self.costs = []

    def measure(self):
        """Microseconds of CPU a request. Exits if anything was not answered as it should be."""
        before = time.clock_gettime(self.clock)
        told = subprocess.run(
            ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-H", "X-Api-Key: abc", self.url],
            stdout=subprocess.PIPE, text=True, check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {LOAD_CORE})).stdout
        spent = time.clock_gettime(self.clock) - before
        requests = int(re.search(r"(\d+) requests in", told)[1])
        if "Non-2xx" in told or "Socket errors" in told or not requests:
            sys.exit(f"proxy.py: {self.url}:\n{told}")
        return spent * 1e6 / requests


def costs(sides):
    """By round; the first warms up and is dropped."""
    order = list(sides.values())
    for turn in range(ROUNDS + 1):
        for side in order:
            cost = side.measure()
            if turn:
                side.costs.append(cost)
        order.reverse()


def refused(port, path):
    """Of each key in turn, HITS times: how many requests were refused, and of how many keys."""
    with socket.create_connection(("127.0.0.1", port), 30) as to:
        reader, hit, all_of = to.makefile("rb"), set(), 0
        for start in range(0, KEYS * HITS, 50):
            keys = [n % KEYS for n in range(start, start + 50)]
            to.sendall(b"".join(b"GET %s HTTP/1.1\r\nHost: bench\r\nX-Api-Key: key-%d\r\n\r\n"
                                % (path.encode(), key) for key in keys))
            for key in keys:
                if status(reader) == 429:
                    all_of += 1
                    hit.add(key)
    return all_of, len(hit)


def status(reader):
    code, length = int(reader.readline().split()[1]), 0
    while (line := reader.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    reader.read(length)
    return code


def row(name, values, digits):
    low, middle, high = statistics.quantiles(values, n=4)
    half = f"{low:,.{digits}f} – {high:,.{digits}f}"
    print(f"{name:<44}{middle:>10,.{digits}f}{half:>20}", flush=True)
    return middle


def ratio(name, above, below):
    return row(name, [one / other for one, other in zip(above.costs, below.costs)], 3)


def reach(figure, value, kind, bound):
    """As bench/reach.hpp prints it."""
    met = value <= bound if kind == "<=" else value >= bound
    print(f"reach {figure} {value:.2f} {kind}{bound:.2f} {'ok' if met else 'short'}")


def main(program):
    os.environ["PATH"] += ":/usr/sbin"  # nginx, for those who are not root
    missing = [needed for needed in ("wrk", "nginx") if not shutil.which(needed)]
    if missing:
        sys.exit(f"proxy.py: it needs {' and '.join(missing)}")
    print(f"{ROUNDS} rounds of {SECONDS} s a side; {CONNECTIONS} connections; cores {PROXY_CORE} "
          f"and {LOAD_CORE}; load before: {os.getloadavg()[0]:.1f}; about 3 minutes")
    with tempfile.TemporaryDirectory(prefix="weir-bench-proxy-") as made, \
            contextlib.ExitStack() as all_of:
        folder = pathlib.Path(made)
        _, upstream = all_of.enter_context(nginx(folder / "upstream", LOAD_CORE, UPSTREAM))
        rival, rival_port = all_of.enter_context(
            nginx(folder / "rival", PROXY_CORE, NGINX, UPSTREAM=upstream))
        (folder / "weir.toml").write_text(WEIR.replace("UPSTREAM", str(upstream)))
        ours = all_of.enter_context(started([program, str(folder / "weir.toml")], PROXY_CORE,
                                            stdout=subprocess.PIPE, text=True))
        port = int(re.search(r":(\d+)$", ours.stdout.readline())[1])
        # One target for all: what is longer costs more.
        sides = {name: Side(ours, port, f"/{path}?user=someone")
                 for name, path in (("none", "none"), ("one", "ones"), ("four", "four"))}
        sides["nginx"] = Side(rival, rival_port, "/none?user=someone")
        costs(sides)
        wrong = {path: refused(port, "/" + path) for path in ("exact", "sketch")}

    print(f"{'CPU µs a request':<44}{'median':>10}{'middle half':>20}")
    for name, text in (("none", "weir-proxy, no limit"), ("one", "weir-proxy, one limit"),
                       ("four", "weir-proxy, four limits"),
                       ("nginx", "nginx, limit_req and proxy_pass")):
        row(text, sides[name].costs, 2)
    four = ratio("  four limits / none", sides["four"], sides["none"])
    one = ratio("  one limit / nginx", sides["one"], sides["nginx"])
    print(f"{KEYS:,} keys, {HITS} requests each under a max of {MAX}: refused")
    for path, text in (("exact", "the exact table"), ("sketch", "a sketch of 4 × 1024")):
        print(f"  {text:<42}{wrong[path][0]:>10,} requests of {wrong[path][1]:,} keys")

    reach("proxy_four_limits_percent", (four - 1) * 100, "<=", 5)
    reach("proxy_one_limit/nginx", one, "<=", 2)
    reach("proxy_exact_wrongly_refused", wrong["exact"][0], "<=", 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: bench/run proxy")
    main(sys.argv[1])

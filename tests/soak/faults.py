# SPDX-License-Identifier: BSL-1.0
"""What tests/soak/run starts and breaks: a private PostgreSQL and two processes of weir-forms."""

import contextlib
import http.client
import importlib.util
import os
import pathlib
import re
import signal
import time

from judge import Fault

TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tools"


def load_tools():
    """Its name has a dot, so that it is a test and no module."""
    spec = importlib.util.spec_from_file_location("forms_postgres", TOOLS / "forms_postgres.test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tools = load_tools()


class Process:
    """One weir-forms, however often it is started again."""

    def __init__(self, number, folder, settings):
        self.settings = {**settings, "OUTBOX": f"{folder}/outbox-{number}"}
        self.folder, self.told, self.server = folder, [], None

    def start(self):
        self.server = tools.forms.Server(self.folder, **self.settings).__enter__()

    def end(self, number=signal.SIGTERM):
        code = self.server.stop(number)
        self.told += self.server.told().splitlines()
        self.server.__exit__()
        return code

    @property
    def port(self):
        return self.server.port

    @property
    def pid(self):
        return self.server.process.pid

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident(self):
        """MiB."""
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2 ** 20

    def places(self, most):
        """How many of most + 1 connections, all open at once, are given a place."""
        crew = [http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                for _ in range(most + 1)]
        served = 0
        for each in crew:
            each.request("GET", "/health")
            got = each.getresponse()
            served += bool(got.read())  # to those that find no place it is a bare 503
        for each in crew:
            each.close()
        return served


class Cluster(tools.Cluster):
    def backends(self):
        """Those of weir-forms, in all databases."""
        return [int(pid) for pid in self.psql(
            "postgres", "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
            " AND datname <> 'postgres'").split()]

    def kept(self, folder):
        """Of each submission: its id, endpoint, received_at, key or nothing, and nonce."""
        return [line.split("|") for line in self.ask(
            folder, "SELECT submission_id, endpoint_id, received_at, coalesce(idempotency_key, ''),"
            " fields::json -> 0 ->> 1 FROM weir_forms.submissions").splitlines()]

    def counter_rows(self, folder, stale):
        """All, and those that recovered so many seconds ago."""
        return [int(number) for number in self.ask(
            folder, "SELECT count(*), count(*) FILTER (WHERE recovered_at <"
            f" (extract(epoch FROM clock_timestamp()) - {stale}) * 1e9)"
            " FROM weir.counters").split("|")]


class Faults:
    """Each takes its time, and when it returns what was broken is there again."""

    KINDS = ("stop a backend", "stop all backends", "terminate all backends", "restart fast",
             "restart immediate", "kill -9", "reload")

    def __init__(self, cluster, processes, rng):
        self.cluster, self.processes, self.rng = cluster, processes, rng
        self.deck, self.done, self.mortal, self.codes = [], [], list(processes), []

    def strike(self):
        """The next one. All kinds come before any comes again."""
        if not self.deck:
            self.deck = self.rng.sample(self.KINDS, len(self.KINDS))
        name, begin = self.deck.pop(), time.time_ns()
        getattr(self, re.sub("[^a-z]+", "_", name).strip("_"))()
        self.done.append(Fault(name, begin, time.time_ns()))
        return self.done[-1]

    def stop_a_backend(self):
        backends = self.cluster.backends()
        self.stand_still(self.rng.sample(backends, min(1, len(backends))))

    def stop_all_backends(self):
        self.stand_still(self.cluster.backends())

    def stand_still(self, backends):
        stopped = []
        try:
            for pid in backends:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
            time.sleep(self.rng.uniform(0.3, 3))
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def terminate_all_backends(self):
        self.cluster.psql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                      " WHERE backend_type = 'client backend'"
                                      " AND pid <> pg_backend_pid()")

    def restart_fast(self):
        self.cluster.control("restart", "-m", "fast")

    def restart_immediate(self):
        self.cluster.control("restart", "-m", "immediate")

    def kill(self):
        victim = self.rng.choice(self.mortal)
        victim.end(signal.SIGKILL)
        time.sleep(self.rng.uniform(0, 1))
        victim.start()

    def reload(self):
        """weir-forms reads its settings once, so this is an end and a start."""
        victim = self.rng.choice(self.mortal)
        self.codes.append(victim.end())
        victim.start()

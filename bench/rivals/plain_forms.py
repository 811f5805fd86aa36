# SPDX-License-Identifier: BSL-1.0
"""A private PostgreSQL for bench/forms.py, and the flow of weir-forms on it as a plain server would
write it (plain_forms.sql). pgbench is that server, and has no HTTP to speak: the rival is better off.
"""

import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parent.parent / "tests/tools"
CLIENTS = (1, 8, 32, 64)

# The tables of weir-forms, which are there, and a table of counters.
TABLES = """
CREATE SCHEMA plain;
CREATE TABLE plain.counters (name text PRIMARY KEY, began bigint, used bigint) WITH (fillfactor = 70);
CREATE TABLE plain.submissions (LIKE weir_forms.submissions INCLUDING ALL);
CREATE TABLE plain.deliveries (LIKE weir_forms.deliveries INCLUDING ALL);
CREATE SEQUENCE plain.made;
"""
SPEND = """
INSERT INTO plain.counters
SELECT 'ip ' || n, floor(extract(epoch FROM now()) / 31536000), 1 FROM generate_series(1, {}) AS n;
"""


class Cluster:
    """As it is installed: what it says is committed is on the disk."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-")
        self.tool("start", "shared_buffers=256MB")
        return self

    def __exit__(self, *_):
        self.tool("stop")

    def tool(self, deed, *settings):
        subprocess.run(["bash", TOOLS / "postgres", deed, self.folder, *settings], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def url(self, database):
        return f"postgresql://postgres@{self.folder.replace('/', '%2F')}/{database}"

    def make(self, database):
        """Its URL."""
        self.ask(self.url("postgres"), "CREATE DATABASE " + database)
        return self.url(database)

    @staticmethod
    def ask(url, sql):
        made = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", url, "-c", sql],
                              check=True, capture_output=True, text=True)
        return made.stdout.strip()


class Plain:
    """Its best: with the number of clients, and in one transaction or in three, that is fastest."""

    def __init__(self, cluster, url, spent, **variables):
        """In a database of weir-forms. So many clients have spent a limit of one."""
        self.url = url
        self.variables = [f"--define={name}={value}" for name, value in variables.items()]
        cluster.ask(url, TABLES + SPEND.format(spent))
        shapes = [(clients, whole) for clients in CLIENTS for whole in (True, False)]
        self.shape = max(shapes, key=lambda shape: self.rate(*shape, seconds=1))

    def best(self, seconds=2):
        """Attempts a second."""
        return self.rate(*self.shape, seconds)

    def rate(self, clients, whole, seconds):
        text = (HERE / "plain_forms.sql").read_text(encoding="utf-8")
        if not whole:
            text = re.sub("^(BEGIN|COMMIT);$", "", text, flags=re.MULTILINE)
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(text)
            script.flush()
            made = subprocess.run(
                [pgbench_path(), "-n", "-M", "prepared", "-c", str(clients), "-j",
                 str(min(clients, 2)), "-T", str(seconds), "-f", script.name, *self.variables,
                 self.url], check=True, capture_output=True, text=True)
        return float(re.search(r"tps = ([\d.]+)", made.stdout)[1])


def pgbench_path():
    folder = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True)
    return pathlib.Path(folder.stdout.strip(), "pgbench")

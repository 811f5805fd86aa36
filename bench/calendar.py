# SPDX-License-Identifier: BSL-1.0
"""calendar.py WEIR_BENCH_CALENDAR [ROUNDS]: calendar caps on PostgreSQL. bench/run calendar builds the
program and starts this. The server is the one that WEIR_POSTGRES names, in which the schema `weir` and
four tables are written to, or else a private one, made for it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tests/tools/postgres"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    named = os.environ.get("WEIR_POSTGRES")
    if named:
        sys.exit(subprocess.run([sys.argv[1], named, *sys.argv[2:]], check=False).returncode)
    folder = tempfile.mkdtemp(prefix="weir-")
    subprocess.run(["bash", TOOL, "start", folder], check=True, stdout=subprocess.DEVNULL)
    try:
        conninfo = f"host={folder} user=postgres dbname=postgres"
        made = subprocess.run([sys.argv[1], conninfo, *sys.argv[2:]], check=False)
    finally:
        subprocess.run(["bash", TOOL, "stop", folder], check=False)
    sys.exit(made.returncode)


main()

# SPDX-License-Identifier: BSL-1.0
"""lockout.py WEIR_BENCH_LOCKOUT [ARGS...]: claimed attempts in memory and on PostgreSQL. bench/run
lockout builds the program and starts this. The server is the one that WEIR_POSTGRES names, or else a
private one, made for it.
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
    if os.environ.get("WEIR_POSTGRES"):
        sys.exit(subprocess.run(sys.argv[1:], check=False).returncode)
    folder = tempfile.mkdtemp(prefix="weir-")
    subprocess.run(["bash", TOOL, "start", folder], check=True, stdout=subprocess.DEVNULL)
    try:
        server = os.environ | {"WEIR_POSTGRES": f"host={folder} user=postgres dbname=postgres"}
        made = subprocess.run(sys.argv[1:], check=False, env=server)
    finally:
        subprocess.run(["bash", TOOL, "stop", folder], check=False)
    sys.exit(made.returncode)


main()

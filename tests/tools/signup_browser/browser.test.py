# SPDX-License-Identifier: BSL-1.0
"""browser.test.py PROGRAM: the sign-up pages in headless Chromium (Debian: chromium, npm).

What npm installs lies in a scratch folder and goes with it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOKEN = "operator-token-0123456789"


def main(program):
    left = 3600 - time.time() % 3600
    if left < 120:  # what waits for the next hour shall wait until the end
        time.sleep(left + 0.1)
    with tempfile.TemporaryDirectory(prefix="weir-signup-browser-") as folder:
        for name in "package.json", "pages.mjs":
            shutil.copy(os.path.join(HERE, name), folder)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock",
                        "--loglevel=error"], cwd=folder, check=True)
        kept = {name: v for name, v in os.environ.items() if not name.startswith("SIGNUP_")}
        settings = {"SIGNUP_LISTEN": "127.0.0.1:0", "SIGNUP_FOLDER": folder + "/data",
                    "SIGNUP_ADMIN_TOKEN": TOKEN, "SIGNUP_SECRET": "a-secret-of-the-test-0123",
                    "SIGNUP_FORM_MIN_AGE_SECONDS": "1", "SIGNUP_PER_HOUR": "4",
                    "SIGNUP_PER_DAY": "9", "SIGNUP_PER_CLIENT": "1000"}
        with subprocess.Popen([program], env={**kept, **settings}, text=True,
                              stdout=subprocess.PIPE) as server:
            try:
                url = re.fullmatch(r"listening on (http://.+)\n", server.stdout.readline())[1]
                return subprocess.run(["node", "--test-reporter=spec", "--test", "pages.mjs"],
                                      cwd=folder, timeout=200,
                                      env={**kept, "SITE": url, "TOKEN": TOKEN}).returncode
            finally:
                server.terminate()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

# SPDX-License-Identifier: BSL-1.0
"""A headless Chromium for tests: opens pages, presses keys, and says what a reader of them sees.

Spoken to by its DevTools protocol, over as much of a WebSocket (RFC 6455) as that needs.
"""

import base64
import http.client
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
KEYS = {"Tab": (9, ""), "Enter": (13, "\r")}


class Chromium:
    """One page, until the with block ends."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-chromium-",
                                                  ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--remote-debugging-port=0", "--user-data-dir=" + self.folder.name,
             "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL)
        self.asked, self.raw, self.read = 0, None, None
        try:
            self.connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.raw:
            self.read.close()
            self.raw.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def connect(self):
        told = pathlib.Path(self.folder.name, "DevToolsActivePort")
        deadline = time.monotonic() + 60
        while not (told.exists() and "\n" in told.read_text()):
            assert time.monotonic() < deadline, "chromium does not start"
            time.sleep(0.05)
        port = int(told.read_text().split("\n")[0])
        while True:
            web = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            web.request("GET", "/json/list")
            pages = [one for one in json.loads(web.getresponse().read()) if one["type"] == "page"]
            web.close()
            if pages:
                break
            assert time.monotonic() < deadline, "chromium has no page"
            time.sleep(0.05)
        path = pages[0]["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self.raw = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.read = self.raw.makefile("rb")
        nonce = base64.b64encode(os.urandom(16)).decode()
        self.raw.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                          f"Upgrade: websocket\r\nConnection: Upgrade\r\n"
                          f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n\r\n"
                          ).encode())
        assert b" 101 " in self.read.readline()
        while self.read.readline() != b"\r\n":
            pass
        for domain in ("Page", "Runtime", "Network", "Accessibility"):
            self.ask(domain + ".enable")

    def ask(self, method, **parameters):
        """The result of one command; what happens meanwhile is passed over."""
        self.asked += 1
        text = json.dumps({"id": self.asked, "method": method, "params": parameters}).encode()
        mask = os.urandom(4)
        size = (struct.pack("!B", 0x80 | len(text)) if len(text) < 126
                else struct.pack("!BH", 0x80 | 126, len(text)))
        self.raw.sendall(b"\x81" + size + mask +
                         bytes(byte ^ mask[n % 4] for n, byte in enumerate(text)))
        while True:
            said = json.loads(self.message())
            if said.get("id") == self.asked:
                assert "error" not in said, said
                return said["result"]

    def message(self):
        text = b""
        while True:
            first, second = self.read.read(2)
            size = second & 127
            if size == 126:
                (size,) = struct.unpack("!H", self.read.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self.read.read(8))
            part = self.read.read(size)
            if first & 15 in (0, 1):
                text += part
                if first & 128:
                    return text

    def run(self, script):
        """The value of an expression of JavaScript, in the page."""
        return self.ask("Runtime.evaluate", expression=script,
                        returnByValue=True)["result"].get("value")

    def then(self, deed):
        """Does what leads to another page, and waits until that one is there."""
        self.run("window.before = true")
        deed()
        deadline = time.monotonic() + 30
        while self.run("window.before === true || document.readyState !== 'complete'"):
            assert time.monotonic() < deadline, "no other page came"
            time.sleep(0.02)

    def open(self, url):
        self.then(lambda: self.ask("Page.navigate", url=url))

    def press(self, key):
        code, text = KEYS[key]
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                     windowsVirtualKeyCode=code, **({"text": text} if text else {}))

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def seen(self):
        """Role and name of what is not hidden from a screen reader."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", ""))
                for node in nodes if not node.get("ignored") and "role" in node]

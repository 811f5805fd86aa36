# SPDX-License-Identifier: BSL-1.0
"""Real clients at weir-ja4-clients: ja4_clients.test.py PATH-OF-THE-PROGRAM

Between client and server stands a relay that keeps what the client sent, so that each fingerprint
the server tells is compared with one calculated from those bytes by nothing of Weir's."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import hello

REQUEST = b"GET / HTTP/1.0\r\n\r\n"


def pump(source, sink, kept=None):
    try:
        while data := source.recv(65536):
            if kept is not None and len(kept) < 200_000:
                kept += data
            sink.sendall(data)
    except OSError:
        pass
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Relay:
    """Connections to `port` go to the server; `said[source port]` is what their client sent."""

    def __init__(self, server_port):
        self.said = {}
        self.server_port = server_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        with client, socket.create_connection(("127.0.0.1", self.server_port)) as server:
            kept = self.said[server.getsockname()[1]] = bytearray()
            back = threading.Thread(target=pump, args=(server, client), daemon=True)
            back.start()
            pump(client, server, kept)
            back.join()


class Listener:
    def __init__(self, folder, *options):
        self.process = subprocess.Popen(
            [sys.argv[1], "--cert", f"{folder}/cert.pem", "--key", f"{folder}/key.pem", *options],
            stdout=subprocess.PIPE, text=True)
        self.relay = Relay(int(self.process.stdout.readline().rsplit(":", 1)[1]))
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split())

    def after(self, count):
        """The lines behind the first `count`, at least one."""
        end = time.monotonic() + 10
        while len(self.lines) <= count and time.monotonic() < end:
            time.sleep(0.01)
        return self.lines[count:]

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.relay.listener.close()


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="weir-ja4-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", f"{cls.folder}/key.pem", "-out", f"{cls.folder}/cert.pem"],
                       check=True, capture_output=True)
        cls.server = Listener(cls.folder)
        cls.addClassCleanup(cls.server.close)

    def need(self, program):
        found = shutil.which(program)
        if not found:
            self.skipTest(f"{program} is not installed")
        return found

    def told(self, count):
        """What the server told of the requests behind the first `count`: each is what the bytes of
        its connection make. Pairs of JA4 and stable key."""
        found = []
        for port, ja4, stable in self.server.after(count):
            message = hello.message_in(bytes(self.server.relay.said[int(port)]))
            expected = hello.fingerprints(message)
            self.assertEqual((ja4, stable), (expected["ja4"], expected["stable_key"]))
            found.append((ja4, stable))
        self.assertTrue(found, "no request came through")
        return found

    def ask(self, command, stdin=b""):
        count = len(self.server.lines)
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60)
        return self.told(count), done

    def ask_twice(self, command, stdin=b""):
        first, done = self.ask(command, stdin)
        again, _ = self.ask(command, stdin)
        self.assertEqual(first, again)
        self.assertIn(first[0][0].encode(), done.stdout)
        return first[0][0]

    def s_client(self, *options):
        return self.ask_twice(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{self.server.relay.port}", "-ign_eof",
             *options], REQUEST)

    def test_openssl_with_many_options(self):
        found = {options: self.s_client(*options) for options in (
            ("-noservername",),
            ("-servername", "example.test"),
            ("-servername", "example.test", "-alpn", "h2,http/1.1"),
            ("-servername", "example.test", "-alpn", "http/1.1"),
            ("-servername", "example.test", "-tls1_2"),
            ("-servername", "example.test", "-tls1_3"),
            ("-alpn", "-"),
            ("-alpn", "x"),
            ("-sigalgs", "ECDSA+SHA256"),
            ("-groups", "P-521:X25519"),
            ("-cipher", "ALL:@SECLEVEL=0"),
            ("-servername", "x" * 240 + ".test"),
            ("-no_ticket",),
            ("-status",),
        )}
        self.assertGreaterEqual(len(set(found.values())), 11, found)
        # J10: the hashes hold with and without a name and ALPN.
        self.assertEqual(found[("-noservername",)][10:],
                         found[("-servername", "example.test", "-alpn", "h2,http/1.1")][10:])

    def test_resumption_changes_the_ja4_and_not_the_stable_key(self):
        session = f"{self.folder}/session"
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{self.server.relay.port}",
                   "-ign_eof"]
        fresh, _ = self.ask([*command, "-sess_out", session], REQUEST)
        resumed, _ = self.ask([*command, "-sess_in", session], REQUEST)
        self.assertNotEqual(fresh[0][0], resumed[0][0])
        self.assertEqual(fresh[0][1], resumed[0][1])

    def test_curl(self):
        curl = [self.need("curl"), "-sk"]
        by_name = self.ask_twice([*curl, f"https://localhost:{self.server.relay.port}/"])
        by_address = self.ask_twice([*curl, f"https://127.0.0.1:{self.server.relay.port}/"])
        self.assertEqual((by_name[3], by_address[3]), ("d", "i"))
        self.assertEqual(by_name[8:10], "h2")
        http1 = self.ask_twice([*curl, "--http1.1", f"https://localhost:{self.server.relay.port}/"])
        self.assertEqual(http1[8:10], "h1")

    def test_gnutls(self):
        self.ask_twice([self.need("gnutls-cli"), "--insecure", "-p", str(self.server.relay.port),
                        "localhost"], REQUEST)

    def test_node(self):
        script = ("require('https').get({host: 'localhost', port: %d, rejectUnauthorized: false,"
                  " family: 4}, (answer) => answer.pipe(process.stdout))" % self.server.relay.port)
        self.ask_twice([self.need("node"), "-e", script])

    def test_python(self):
        context = ssl._create_unverified_context()  # pylint: disable=protected-access
        found = []
        for _ in range(2):
            count = len(self.server.lines)
            with socket.create_connection(("127.0.0.1", self.server.relay.port)) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost") as tls:
                tls.sendall(REQUEST)
                while tls.recv(4096):
                    pass
            found += self.told(count)
        self.assertEqual(found[0], found[1])

    def test_chromium(self):
        chromium = self.need("chromium")
        keys, loads = set(), []
        for attempt in range(2):
            profile = f"{self.folder}/profile-{attempt}"
            found, done = self.ask(
                [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                 "--no-first-run", "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", "--ignore-certificate-errors", f"--user-data-dir={profile}",
                 "--dump-dom", f"https://localhost:{self.server.relay.port}/page"])
            self.assertIn(found[0][0].encode(), done.stdout)
            loads.append(found[0])
            keys |= {stable for _, stable in found}
        self.assertEqual(loads[0], loads[1])
        self.assertEqual(len(keys), 1)
        self.assertRegex(loads[0][0], r"^t13d\d{4}h2_")

    def test_a_hello_over_the_cap_has_none_and_is_served(self):
        small = Listener(self.folder, "--most-bytes", "200")
        self.addCleanup(small.close)
        subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{small.relay.port}",
                        "-ign_eof"], input=REQUEST, capture_output=True, timeout=60)
        self.assertEqual([line[1:] for line in small.after(0)], [["none", "none"]])

    def test_H05_what_is_no_hello_harms_nobody(self):
        def say(*pieces):
            with socket.create_connection(("127.0.0.1", self.server.relay.port)) as plain:
                plain.settimeout(10)
                for piece in pieces:
                    plain.sendall(piece)
                plain.shutdown(socket.SHUT_WR)
                try:
                    while plain.recv(4096):
                        pass
                except OSError:
                    pass

        count = len(self.server.lines)
        self.s_client("-noservername")
        kept = bytes(self.server.relay.said[int(self.server.lines[count][0])])
        asked = len(self.server.lines)
        say()
        say(b"GET / HTTP/1.1\r\n\r\n")
        say(kept[:150])
        say(*(bytes([byte]) for byte in kept[:100]))
        self.assertEqual(len(self.server.lines), asked)
        self.s_client("-noservername")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

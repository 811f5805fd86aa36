# SPDX-License-Identifier: BSL-1.0
"""A real nginx for the tests of programs that stand behind one."""

import os
import socket
import subprocess
import tempfile


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nginx:
    """A real nginx before a port, in a temporary folder, on a port of its own."""

    CONFIGURATION = """
        daemon off;
        pid {folder}/pid;
        error_log {folder}/error.log;
        worker_processes 1;
        events {{ worker_connections 64; }}
        http {{
            access_log off;
            client_body_temp_path {folder}/body;
            proxy_temp_path {folder}/proxy;
            fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi;
            scgi_temp_path {folder}/scgi;
            upstream program {{
                server 127.0.0.1:{behind};
                keepalive 4;
            }}
            server {{
                listen 127.0.0.1:{port};
                listen 127.0.0.2:{port};
                location / {{
                    proxy_pass http://program;
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                }}
            }}
        }}
    """

    def __init__(self, binary, behind):
        self.binary, self.behind = binary, behind

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-nginx-")
        os.chmod(self.folder.name, 0o755)  # as root, the worker is another user
        for _ in range(5):  # a free port may be gone by the time nginx binds it
            self.port = free_port()
            if self.start():
                return self
        with open(self.folder.name + "/error.log", encoding="utf-8") as log:
            raise AssertionError("nginx does not start: " + log.read())

    def start(self):
        configuration = self.folder.name + "/nginx.conf"
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(self.CONFIGURATION.format(folder=self.folder.name, port=self.port,
                                                 behind=self.behind))
        self.process = subprocess.Popen(
            [self.binary, "-p", self.folder.name, "-c", configuration],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=10).close()
                return True
            except ConnectionRefusedError:
                continue
        return False

    def url(self, host="127.0.0.1"):
        return f"http://{host}:{self.port}"

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.folder.cleanup()

"""A private RabbitMQ server, which can be killed and restarted."""

import os
import signal
import socket
import subprocess
import time
import uuid

import pytest

from tests._support.ports import free_port
from tests._support.required import program

__all__ = ["RabbitServer"]


class RabbitServer:
    """A node on free ports of loopback, with its data in a folder.

    Attributes:
        url: The URL for clients.
    """

    def __init__(self, folder):
        # Not the wrapper that Debian has on the PATH, which checks the user.
        self.command = program("rabbitmq-server")
        self.folder = folder / "rabbitmq"
        self.folder.mkdir()
        self.log = folder / "rabbitmq.log"
        self.port, self.distribution, self.names = (free_port() for _ in range(3))
        self.name = f"retrykit-{uuid.uuid4().hex[:8]}@localhost"
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._configure()

    def start(self):
        """Start it, and wait until it accepts connections."""
        with self.log.open("a") as log:
            # Its own name daemon, which would otherwise outlive the test.
            self.namer = subprocess.Popen(  # noqa: S603  a fixed command
                [program("epmd"),
                 "-address", "127.0.0.1", "-port", str(self.names)],
                stdout=log, stderr=log,
            )  # fmt: skip
            self.process = subprocess.Popen(  # noqa: S603  a fixed command
                [self.command], env=self.environ, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + 90
        while not self._answers():
            if time.monotonic() > end or self.process.poll() is not None:
                pytest.fail(f"rabbitmq did not start: {self.log.read_text()}")
            time.sleep(0.2)

    def stop(self, number=signal.SIGKILL):
        """Stop it and its child processes, by default immediately."""
        os.killpg(self.process.pid, number)
        self.process.wait(120)
        self.namer.kill()
        self.namer.wait(120)

    def _answers(self):
        """Return whether it answers with a frame of AMQP."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as client:
                client.settimeout(2)
                client.sendall(b"AMQP\x00\x00\x09\x01")
                return client.recv(1) == b"\x01"
        except OSError:
            return False

    def _configure(self):
        settings = self.folder / "rabbitmq.conf"
        settings.write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nloopback_users.guest = true\n"
        )
        self.environ = os.environ | {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self.names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_DIST_PORT": str(self.distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1}"
                # After a kill it repeats moves between queues after this time, in
                # milliseconds; by default after 3 minutes.
                " -rabbit dead_letter_worker_publisher_confirm_timeout 5000"
            ),
            "RABBITMQ_CONFIG_FILE": str(settings),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
        }

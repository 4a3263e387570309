"""Celery on three kinds of queues, each with a server of its own."""

import contextlib
import json
import subprocess
import time
from functools import partial
from typing import ClassVar

import redis
from kombu import Connection

from tests._support.rabbitmq_server import RabbitServer
from tests._support.redis_server import Server
from tests.engines.engine import Engine

__all__ = ["CeleryOnClassic", "CeleryOnQuorum", "CeleryOnRedis"]


class CeleryEngine(Engine):
    """What the three have in common.

    Attributes:
        dies: A worker dies when it has sent the message after so many failures,
            before it acknowledges the one before; 0 is never.
        slow: How long a worker takes to store what it knows, in seconds.
    """

    dies, slow = 0, 0.0
    module = "tests.engines.celery_app"
    kind = ""
    cannot: ClassVar = {"async": "Celery does not await; the app refuses it"}

    def environ(self):
        return {
            "RETRYKIT_ENGINE_KIND": self.kind,
            "RETRYKIT_ENGINE_BROKER": self.broker,
            "RETRYKIT_ENGINE_BACKEND": self.backend,
            "RETRYKIT_ENGINE_DIES": str(self.dies),
            "RETRYKIT_ENGINE_SLOW": str(self.slow),
        }

    def spoil(self, job, change):
        """Change a message, which its worker holds in its memory until it dies."""
        # The ledger, which says that it waits, is written before that is sent.
        time.sleep(1)
        for worker in self.workers:
            worker.kill()
        self.until(lambda: self.changed(job, change), f"message of {job}", 20)
        self.work("again")


class CeleryOnRedis(CeleryEngine):
    """Redis, with hops of two seconds below a visibility timeout of six."""

    name = "celery-redis"
    kind = "redis"

    def start(self):
        self.server = Server(self.folder, keeps=True)
        self.server.start()
        self.broker = f"redis://127.0.0.1:{self.server.port}/0"
        self.backend = f"redis://127.0.0.1:{self.server.port}/1"

    def stop(self):
        self.server.kill()

    def restart(self):
        self.hush()
        self.server.kill()
        self.server.start()
        for worker in [*self.workers]:
            # Celery 5.7 ends a worker that held messages when Redis went away;
            # what supervises it starts it again.
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(10)
                self.work("again")

    def changed(self, job, change):
        """Change all messages: in the middle of a hop there are two."""
        found = 0
        # Not the server's own client, which is impatient.
        with redis.Redis(port=self.server.port, decode_responses=True) as client:
            for tag, kept in client.hgetall("unacked").items():
                message, exchange, key = json.loads(kept)
                if spoil(message["headers"], job, change):
                    held = json.dumps([message, exchange, key])
                    found += client.hset("unacked", tag, held) == 0
            for place, kept in enumerate(client.lrange("celery", 0, -1)):
                message = json.loads(kept)
                if spoil(message["headers"], job, change):
                    found += client.lset("celery", place, json.dumps(message))
        return found > 0


class CeleryOnRabbit(CeleryEngine):
    """RabbitMQ, with the ledger in a file of SQLite."""

    def start(self):
        self.server = RabbitServer(self.folder)
        self.server.start()
        self.broker = self.server.url
        self.backend = f"db+sqlite:///{self.folder / 'results.sqlite'}"

    def stop(self):
        self.server.stop()

    def restart(self):
        self.hush()
        self.server.stop()
        self.server.start()

    def changed(self, job, change):
        """Change all messages: in the middle of a hop there are two."""
        with Connection(self.broker) as connection, connection.Producer() as producer:
            own = [
                (channel, message)
                for queue in self.queues
                for channel in [connection.channel()]
                for message in iter(partial(channel.basic_get, queue), None)
                if spoil(message.headers, job, change)
            ]
            for channel, message in own:
                producer.publish(
                    message.body, routing_key="celery", delivery_mode=2,
                    headers=message.headers | {"eta": None},
                    content_type=message.properties["content_type"],
                    content_encoding="utf-8", correlation_id=job,
                )  # fmt: skip
                channel.basic_ack(message.delivery_tag)
        return bool(own)


class CeleryOnClassic(CeleryOnRabbit):
    """Classic queues: a worker holds what waits, in hops of two seconds."""

    name = "celery-rabbitmq-classic"
    kind = "classic"
    queues = ("celery",)


class CeleryOnQuorum(CeleryOnRabbit):
    """Quorum queues: RabbitMQ holds what waits, and rounds it up to a second."""

    name = "celery-rabbitmq-quorum"
    kind = "quorum"
    granularity = 3.0
    queues = tuple(f"celery_delayed_{level}" for level in range(28))


def spoil(headers, job, change):
    """Change what a message carries, and return whether it is one of the job."""
    if headers["id"] != job:
        return False
    changed = change(json.loads(headers["retrykit"]))
    headers["retrykit"] = changed if isinstance(changed, str) else json.dumps(changed)
    return True

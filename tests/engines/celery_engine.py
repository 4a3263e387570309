"""Celery on three kinds of queues, each with a private server."""

import contextlib
import json
import subprocess
import time
from functools import partial
from typing import ClassVar

import redis
from kombu import Connection

from tests._support.rabbitmq_server import RabbitServer
from tests._support.redis_server import RedisServer
from tests.engines.engine import Engine

__all__ = ["CeleryOnClassic", "CeleryOnQuorum", "CeleryOnRedis"]


class CeleryEngine(Engine):
    """Base class of the three.

    Attributes:
        dies: The number of failures after which a worker dies between sending the
            next message and acknowledging the last one; 0 is never.
        slow: How long a worker takes to store a result, in seconds.
        hop: How long a message is held at most, except in quorum queues, in seconds.
    """

    dies, slow, hop = 0, 0.0, 2
    module, app = "tests.engines.celery_app", "app"
    kind = ""
    unsupported: ClassVar = {"async": "Celery cannot run coroutine functions"}

    def environ(self):
        return {
            "RETRYKIT_ENGINE_KIND": self.kind,
            "RETRYKIT_ENGINE_BROKER": self.broker,
            "RETRYKIT_ENGINE_BACKEND": self.backend,
            "RETRYKIT_ENGINE_HOP": str(self.hop),
            "RETRYKIT_ENGINE_DIES": str(self.dies),
            "RETRYKIT_ENGINE_SLOW": str(self.slow),
        }

    def change_envelope(self, job, change):
        """Change the message of a job; its worker holds it in memory until it dies."""
        # The ledger is written before the message is sent.
        time.sleep(1)
        for worker in self.workers:
            worker.kill()
        self.wait_until(
            lambda: self.change_messages(job, change), f"message of {job}", 20
        )
        self.start_worker("again")


class CeleryOnRedis(CeleryEngine):
    """Redis, with hops of two seconds below a visibility timeout of six."""

    name = "celery-redis"
    kind = "redis"

    def start(self):
        self.server = RedisServer(self.folder, persistent=True)
        self.server.start()
        self.broker = f"redis://127.0.0.1:{self.server.port}/0"
        self.backend = f"redis://127.0.0.1:{self.server.port}/1"

    def stop(self):
        self.server.kill()

    def restart(self):
        self.stop_client()
        self.server.kill()
        self.server.start()
        for worker in [*self.workers]:
            # A worker of Celery 5.7 that held messages ends when Redis goes away; a
            # supervisor restarts it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(10)
                self.start_worker("again")

    def change_messages(self, job, change):
        """Change all messages of the job: during a hop there are two."""
        found = 0
        # Not `self.server.client`, whose timeouts are short.
        with redis.Redis(port=self.server.port, decode_responses=True) as client:
            for tag, stored in client.hgetall("unacked").items():
                message, exchange, key = json.loads(stored)
                if change_headers(message["headers"], job, change):
                    changed = json.dumps([message, exchange, key])
                    found += client.hset("unacked", tag, changed) == 0
            for index, stored in enumerate(client.lrange("celery", 0, -1)):
                message = json.loads(stored)
                if change_headers(message["headers"], job, change):
                    found += client.lset("celery", index, json.dumps(message))
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
        self.stop_client()
        self.server.stop()
        self.server.start()

    def change_messages(self, job, change):
        """Change all messages of the job: during a hop there are two."""
        with Connection(self.broker) as connection, connection.Producer() as producer:
            own = [
                (channel, message)
                for queue in self.queues
                for channel in [connection.channel()]
                for message in iter(partial(channel.basic_get, queue), None)
                if change_headers(message.headers, job, change)
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
    """Classic queues: a worker holds waiting jobs, in hops of two seconds."""

    name = "celery-rabbitmq-classic"
    kind = "classic"
    queues = ("celery",)


class CeleryOnQuorum(CeleryOnRabbit):
    """Quorum queues: RabbitMQ holds waiting jobs; delays are rounded up to seconds."""

    name = "celery-rabbitmq-quorum"
    kind = "quorum"
    granularity = 3.0
    queues = tuple(f"celery_delayed_{level}" for level in range(28))


def change_headers(headers, job, change):
    """Change the envelope in a message; return whether it is a message of the job."""
    if headers["id"] != job:
        return False
    changed = change(json.loads(headers["retrykit"]))
    headers["retrykit"] = changed if isinstance(changed, str) else json.dumps(changed)
    return True

"""Index of the due times of all unfinished jobs, and their messages, on Redis.

Other brokers need no index: they lose no messages.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final, final

from celery import Celery
from kombu import Message
from kombu.utils.json import loads

__all__ = ["DueIndex", "open_index"]

_KEY: Final = "retrykit.due"
# Messages or jobs to read at once.
_PAGE: Final = 500


@final
class DueIndex:
    """The index of due times, and the messages in the same Redis database.

    Args:
        channel: A channel of kombu's Redis transport.
    """

    def __init__(self, channel: Any) -> None:
        self._channel, self._client = channel, channel.client
        # kombu's client adds it to the keys of some commands only.
        self._prefix = channel.global_keyprefix

    def put(self, job: str, due: float) -> None:
        """Set the due time of a job, in seconds since 1970."""
        self._client.zadd(_KEY, {job: due})

    def remove(self, job: str) -> None:
        """Remove a job that has ended."""
        self._client.zrem(_KEY, job)

    def due_before(self, when: float, limit: int) -> list[str]:
        """Return the ids of up to *limit* jobs due before a time, the oldest first."""
        # kombu's client adds the prefix to ZRANGE.
        found = self._client.zrange(
            _KEY, "-inf", f"({when!r}", byscore=True, offset=0, num=limit
        )
        return [job.decode() for job in found]

    def all_jobs(self) -> Iterator[str]:
        """Yield the ids of all unfinished jobs, in the order of their due times.

        A job whose due time changes meanwhile may be missing, or come twice.
        """
        start = 0
        while page := self._client.zrange(_KEY, start, start + _PAGE - 1):
            yield from (job.decode() for job in page)
            start += _PAGE

    def headers_of_messages(self, queues: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the headers of messages in the queues, then of those that workers hold.

        This is the order in which messages move. A message that is sent or taken
        meanwhile may be missing.
        """
        for queue in queues:
            for priority in self._channel.priority_steps:
                key = self._prefix + self._channel._q_for_pri(queue, priority)  # noqa: SLF001
                yield from map(_headers_of, self._read_list(key))
        for _, stored in self._client.hscan_iter(
            self._prefix + self._channel.unacked_key, count=_PAGE
        ):
            yield _headers_of(loads(stored)[0])

    def messages_in(self, queue: str) -> list[tuple[Message, bytes]]:
        """Return the messages in a queue, the oldest first, then those taken from it.

        Each comes with the argument for `remove_message`. The taken ones have not been
        acknowledged. All stay where they are, so that nobody else misses them.
        """
        queued = reversed(self._client.lrange(self._prefix + queue, 0, -1))
        found = [(loads(raw), raw) for raw in queued]
        key = self._prefix + self._channel.unacked_key
        for tag, raw in self._client.hscan_iter(key, count=_PAGE):
            message, _, routing_key = loads(raw)
            if routing_key == queue:
                found.append((message, tag))
        return [(self._channel.message_to_python(each), raw) for each, raw in found]

    def remove_message(self, queue: str, raw: bytes) -> None:
        """Remove a message that `messages_in` returned."""
        self._client.lrem(self._prefix + queue, 1, raw)
        # One that was taken is identified by its tag.
        self._client.hdel(self._channel.unacked_key, raw)
        self._client.zrem(self._channel.unacked_index_key, raw)

    def _read_list(self, key: str) -> Iterator[Any]:
        start = 0
        while page := self._client.lrange(key, start, start + _PAGE - 1):
            yield from map(loads, page)
            start += _PAGE


@contextmanager
def open_index(app: Celery) -> Iterator[DueIndex | None]:
    """Open the index of an app for a block; yield None if its broker is not Redis."""
    with app.connection_or_acquire() as connection:
        if connection.transport.driver_type == "redis":
            yield DueIndex(connection.default_channel)
        else:
            yield None


def _headers_of(message: dict[str, Any]) -> dict[str, Any]:
    headers: dict[str, Any] = message.get("headers") or {}
    return headers

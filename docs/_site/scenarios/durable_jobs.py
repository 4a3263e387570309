"""A worker is killed after its job has sent a mail; another one repeats the attempt.

The store stands for a job engine. It keeps the job as JSON, and nothing else.
"""

import json
from contextlib import suppress

from docs._site.sequences import Sequence
from retrykit import Policy
from retrykit.durable import Envelope, Job, idempotency_key

PARTIES = "store", "worker 1", "worker 2", "mail server"
HOURLY = Policy(on=ConnectionError, schedule=["1h", "1h"])


class Killed(BaseException):
    """The process of a worker ends."""


def main(sequence: Sequence) -> None:
    """Work on one job until it has succeeded."""
    worker, sent = "worker 1", set[str]()
    down = [True]

    def serve(key: str) -> str:
        if down and down.pop():
            raise ConnectionError
        reply = "sent already" if key in sent else "sent"
        sent.add(key)
        return reply

    def send_mail() -> None:
        send = sequence.between(worker, "mail server", serve, "{0}")
        if send(idempotency_key()) == "sent":
            sequence.note(worker, "is killed")
            raise Killed

    job = Job(send_mail, HOURLY, "send_mail")
    stored = json.dumps(job.envelope("mail-7").to_dict())
    for worker in ("worker 1", "worker 1", "worker 2"):
        envelope = Envelope.from_dict(json.loads(stored))
        sequence.message("store", worker, f"attempt {envelope.attempt}")
        with suppress(Killed):
            after = job.attempt(envelope, [], {}).envelope
            stored = json.dumps(after.to_dict())
            sequence.message(worker, "store", after.status, "result")
            sequence.clock.advance(after.state.next_delay or 0)
            continue
        sequence.clock.advance("2m")  # until the heartbeat of the worker is missed

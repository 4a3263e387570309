"""Interleaves Celery workers at random: one step of one of them at a time.

Each read, write, send and acknowledgement of a worker is a step. Between any two steps,
another worker may run, or all of them may die at once.
"""

import random
import threading
from collections import Counter

from celery import signals
from celery.backends.cache import CacheBackend
from celery.exceptions import WorkerTerminate

from retrykit._internal.clocks import sync_clock
from retrykit.durable import idempotency_key
from retrykit.integrations.celery._ledger import LEDGER
from tests._support.celery_worker import InMemoryWorker

__all__ = ["Simulation"]

WORKERS = 2
# Far more than any job of a few attempts needs.
STEPS = 2000
# Probabilities that another worker than the last one continues, that all die, and that
# all die when one of them has sent a message but not acknowledged the one before.
SWITCH, KILL, KILL_LATE = 0.2, 0.02, 0.4


class WorkerThread:
    """A thread that handles a message, and stops before each of its steps.

    Attributes:
        step: The next step; None when the thread has ended.
        has_read: Whether it has read the ledger and not written to it since.
        unrecorded: The key of an attempt that it has made but not recorded.
        awaits: The workers that must write first.
    """

    local = threading.local()

    def __init__(self, message, work):
        self.message, self.work = message, work
        self.step, self.has_read, self.unrecorded, self.awaits = (
            "begin",
            False,
            None,
            [],
        )
        self.killed = False
        self.resumed, self.stopped = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()
        self.stopped.acquire()

    def run_step(self):
        """Run the next step, and stop before the one after it."""
        self.resumed.release()
        self.stopped.acquire()

    def kill(self):
        """End it before its next step."""
        self.killed = True
        while self.step is not None:
            self.run_step()
        if not self.message.acknowledged:
            self.message.requeue()

    def stop_before(self, step):
        """Wait before a step until this worker may continue."""
        self.step = step
        self.stopped.release()
        self.resumed.acquire()
        if self.killed:
            raise WorkerTerminate
        if step == "read":
            self.has_read = True
        elif step == "write":
            self.has_read, self.unrecorded = False, None

    def _run(self):
        self.local.worker = self
        try:
            self.stop_before("begin")
            self.work(self.message)
        except WorkerTerminate:
            pass
        finally:
            self.step = None
            self.stopped.release()


def stop_before(step):
    """Wait before a step, if this is the thread of a worker."""
    worker = getattr(WorkerThread.local, "worker", None)
    if worker is not None:
        worker.stop_before(step)


class SteppedBackend(CacheBackend):
    """A result backend; reads and writes of the ledger are steps."""

    def get_task_meta(self, task_id, cache=True):
        if LEDGER in task_id:
            stop_before("read")
        return super().get_task_meta(task_id, cache=cache)

    def store_result(self, task_id, *args, **kwargs):
        if LEDGER in task_id:
            stop_before("write")
        return super().store_result(task_id, *args, **kwargs)


class Simulation:
    """A job whose first attempts fail, its workers, and their clock.

    Args:
        seed: Seed of the interleaving.
        kills: Maximum number of times that all workers die.

    Attributes:
        attempts: How often each attempt was made.
        may_repeat: The attempts that were made but not recorded when a worker died.
        steps: All steps, in their order.
    """

    def __init__(self, seed, kills):
        self.chance, self.kills = random.Random(seed), kills  # noqa: S311
        self.worker = InMemoryWorker(
            result_backend="tests._support.celery_interleaving:SteppedBackend"
        )
        self.workers, self.steps = [], []
        self.attempts, self.may_repeat = Counter(), set()
        self.last = None

    def run(self, policy, fails):
        """Run the job until no worker has anything to do."""

        def verify(host):
            stop_before("attempt")
            WorkerThread.local.worker.unrecorded = key = idempotency_key()
            self.attempts[key] += 1
            if len(self.attempts) <= fails:
                raise ConnectionError
            return "verified"

        signals.before_task_publish.connect(self._sends)
        try:
            with sync_clock.use(self, process_wide=True):
                self.worker.send(verify, policy, max_killed=None)
                while choices := self._choices():
                    self._choose(choices)()
                    assert len(self.steps) < STEPS, self.steps
        finally:
            signals.before_task_publish.disconnect(self._sends)

    def now(self):
        return 0.0

    def sleep(self, _delay):
        """Wait until all workers that have read have written: none is so slow."""
        worker = WorkerThread.local.worker
        worker.awaits = [other for other in self.workers if other.has_read]
        stop_before("wait")

    def _sends(self, **_):
        stop_before("send")

    def _choices(self):
        """Return the workers that can continue; None means a new one."""
        for each in self.workers:
            each.awaits = [w for w in each.awaits if w in self.workers and w.has_read]
        choices = [each for each in self.workers if not each.awaits]
        if len(self.workers) < WORKERS and self.worker.messages():
            choices.append(None)
        return choices

    def _choose(self, choices):
        """Choose the next step: mostly of the last worker, so others fall behind."""
        late = any(each.step == "acknowledge" for each in self.workers)
        if self.kills and self.chance.random() < (KILL_LATE if late else KILL):
            return self._kill
        if self.last not in choices or self.chance.random() < SWITCH:
            self.last = self.chance.choice(choices)
        return self._start_worker if self.last is None else self._step_of(self.last)

    def _start_worker(self):
        self.workers.append(WorkerThread(self.worker.take_message(), self._handle))

    def _handle(self, message):
        def acknowledge(*_args, **_more):
            stop_before("acknowledge")
            message.ack()

        # Celery has a current app for each thread.
        self.worker.app.set_current()
        self.worker.request(message, acknowledge).execute_using_pool(self.worker.pool)

    def _step_of(self, worker):
        def step():
            self.steps.append(f"{self.workers.index(worker)} {worker.step}")
            worker.run_step()
            if worker.step is None:
                self.workers.remove(worker)

        return step

    def _kill(self):
        self.kills -= 1
        self.steps.append("kill")
        self.may_repeat |= {each.unrecorded for each in self.workers}
        for worker in self.workers:
            worker.kill()
        self.workers.clear()

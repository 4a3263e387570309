"""Workers of Celery that take turns: one step of one of them at a time.

What a worker reads, writes, sends and acknowledges are its steps. Between any two
of them another worker may make its own, or all may die at once.
"""

import random
import threading
from collections import Counter

from celery import signals
from celery.backends.cache import CacheBackend
from celery.exceptions import WorkerTerminate

from retrykit._internal.clocks import sync_clock
from retrykit.durable import idempotency_key
from retrykit.integrations.celery.ledger import LEDGER
from tests._support.celery_desk import Desk

__all__ = ["Stage"]

WORKERS = 2
# Far more than any job of a few attempts needs.
STEPS = 2000
# How likely it is that another worker goes on than the last time, that all die, and
# that all die where one has sent a message and not acknowledged the one before.
SWITCH, KILL, KILL_LATE = 0.2, 0.02, 0.4


class Worker:
    """A thread that works on a message, and stops before each of its steps.

    Attributes:
        step: What it does when it goes on; None when it has ended.
        read: Whether it has read the ledger, and not yet written to it since.
        made: The key of the attempt that it has made, and not yet written down.
        awaits: The workers that it lets write first.
    """

    here = threading.local()

    def __init__(self, message, work):
        self.message, self.work = message, work
        self.step, self.read, self.made, self.awaits = "begin", False, None, []
        self.killed = False
        self.told, self.stopped = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()
        self.stopped.acquire()

    def go(self):
        """Make its step, and stop before the next one."""
        self.told.release()
        self.stopped.acquire()

    def kill(self):
        """Let it end where it is."""
        self.killed = True
        while self.step is not None:
            self.go()
        if not self.message.acknowledged:
            self.message.requeue()

    def stop(self, step):
        """Wait before a step until it is this worker's turn."""
        self.step = step
        self.stopped.release()
        self.told.acquire()
        if self.killed:
            raise WorkerTerminate
        if step == "read":
            self.read = True
        elif step == "write":
            self.read, self.made = False, None

    def _run(self):
        self.here.worker = self
        try:
            self.stop("begin")
            self.work(self.message)
        except WorkerTerminate:
            pass
        finally:
            self.step = None
            self.stopped.release()


def stop(step):
    """Let the worker stop whose thread this is, if it is one's."""
    worker = getattr(Worker.here, "worker", None)
    if worker is not None:
        worker.stop(step)


class Shared(CacheBackend):
    """A result backend whose ledger is read and written in steps."""

    def get_task_meta(self, task_id, cache=True):
        if LEDGER in task_id:
            stop("read")
        return super().get_task_meta(task_id, cache=cache)

    def store_result(self, task_id, *told, **more):
        if LEDGER in task_id:
            stop("write")
        return super().store_result(task_id, *told, **more)


class Stage:
    """A job whose first attempts fail, those who work on it, and their clock.

    Args:
        seed: What decides whose turn it is.
        kills: How often all workers die, at most.

    Attributes:
        made: How often each attempt was made.
        excused: Those that were made when a worker died, and not yet written down.
        told: All that happened.
    """

    def __init__(self, seed, kills):
        self.chance, self.kills = random.Random(seed), kills  # noqa: S311
        self.desk = Desk(result_backend="tests._support.celery_turns:Shared")
        self.workers, self.told = [], []
        self.made, self.excused = Counter(), set()
        self.last = None

    def play(self, policy, fails):
        """Let the job run until nobody has anything to do."""

        def verify(host):
            stop("attempt")
            Worker.here.worker.made = key = idempotency_key()
            self.made[key] += 1
            if len(self.made) <= fails:
                raise ConnectionError
            return "verified"

        signals.before_task_publish.connect(self._sends)
        try:
            with sync_clock.use(self, process_wide=True):
                self.desk.sent(verify, policy)
                while turns := self._turns():
                    self._one_of(turns)()
                    assert len(self.told) < STEPS, self.told
        finally:
            signals.before_task_publish.disconnect(self._sends)

    def now(self):
        return 0.0

    def sleep(self, _delay):
        """Let those write first who have read: none of them needs so long."""
        worker = Worker.here.worker
        worker.awaits = [other for other in self.workers if other.read]
        stop("wait")

    def _sends(self, **_):
        stop("send")

    def _turns(self):
        """Return all that may happen next."""
        for each in self.workers:
            each.awaits = [w for w in each.awaits if w in self.workers and w.read]
        turns = [each for each in self.workers if not each.awaits]
        if len(self.workers) < WORKERS and self.desk.lying():
            turns.append(None)
        return turns

    def _one_of(self, turns):
        """Choose what happens: mostly more of the same, so that others fall behind."""
        late = any(each.step == "acknowledge" for each in self.workers)
        if self.kills and self.chance.random() < (KILL_LATE if late else KILL):
            return self._kill
        if self.last not in turns or self.chance.random() < SWITCH:
            self.last = self.chance.choice(turns)
        return self._begin if self.last is None else self._of(self.last)

    def _begin(self):
        self.workers.append(Worker(self.desk.take(), self._work))

    def _work(self, message):
        def acknowledge(*_args, **_more):
            stop("acknowledge")
            message.ack()

        # Celery has one for each thread.
        self.desk.app.set_current()
        self.desk.request(message, acknowledge).execute_using_pool(self.desk.pool)

    def _of(self, worker):
        def turn():
            self.told.append(f"{self.workers.index(worker)} {worker.step}")
            worker.go()
            if worker.step is None:
                self.workers.remove(worker)

        return turn

    def _kill(self):
        self.kills -= 1
        self.told.append("kill")
        self.excused |= {each.made for each in self.workers}
        for worker in self.workers:
            worker.kill()
        self.workers.clear()

"""How often tasks of Celery and RQ attempt a retried call: docs/web_frameworks.md."""

import signal
from collections import Counter

import pytest
from redis import Redis
from rq import Queue, Retry, SimpleWorker
from rq.timeouts import JobTimeoutException

from retrykit import Policy, retry, with_policy
from retrykit.durable import Job
from retrykit.testing import virtual_time
from tests._support.celery_worker import InMemoryWorker
from tests._support.page_modules import imported_page
from tests._support.redis_server import RedisServer

STOPPING = [signal.SIGINT, signal.SIGTERM]
"""The signals that a worker of RQ handles, from then on."""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    with (
        virtual_time(),
        imported_page("web_frameworks.md", tmp_path_factory.mktemp("page")) as load,
    ):
        yield load("tasks")


@pytest.fixture
def attempts(tasks):
    """Return the attempts of a test."""
    tasks.attempts.clear()
    return tasks.attempts


@pytest.fixture
def worker(tasks):
    return InMemoryWorker(tasks.app)


@pytest.mark.parametrize(("task", "most"), [
    ("multiplied", 9), ("by_the_call", 3), ("by_the_queue", 3),
    ("unless_given_up", 3),
])  # fmt: skip
def test_a_task_of_celery_makes_as_many_attempts_as_the_page_says(
    worker, tasks, attempts, task, most
):
    result = getattr(tasks, task).delay("book")
    worker.handle_all()
    assert result.state == "FAILURE"
    assert len(attempts) == most


def test_a_task_of_celery_is_retried_after_an_error_of_no_call(worker, tasks, attempts):
    errors = [FileNotFoundError("first"), FileNotFoundError("second")]

    def reserve(item):
        attempts.append(item)
        if errors:
            raise errors.pop()

    original, tasks.reserve = tasks.reserve, reserve
    try:
        result = tasks.unless_given_up.delay("book")
        worker.handle_all()
    finally:
        tasks.reserve = original
    assert result.state == "SUCCESS"
    assert len(attempts) == 3


def test_a_task_that_celery_has_queued_again_is_not_repeated_by_its_call(worker, tasks):
    runs = []

    @tasks.app.task(bind=True, max_retries=2, name="queued_again", shared=False)
    @retry(schedule=[0, 0])
    def queued_again(self):
        runs.append(self.request.retries)
        raise self.retry(countdown=0)

    result = queued_again.delay()
    worker.handle_all()
    # The last one is that of `MaxRetriesExceededError`.
    assert runs == [0, 1, 2]
    assert result.state == "FAILURE"


@pytest.fixture(scope="module")
def queue(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    with Redis(port=server.port) as client:
        yield Queue(connection=client)
    server.kill()


def test_a_job_of_rq_makes_as_many_attempts_as_the_page_says(queue, tasks, attempts):
    twice_more = Retry(max=2)
    jobs = [
        queue.enqueue(tasks.reserve, "both retry", retry=twice_more),
        queue.enqueue(tasks.reserve, "the call retries"),
        queue.enqueue(tasks.reserve_once, "the queue retries", retry=twice_more),
        # It is imported by its name, which is that of the function under its policy.
        queue.enqueue(with_policy(tasks.reserve, max_attempts=1), "another policy"),
    ]
    before = [(number, signal.getsignal(number)) for number in STOPPING]
    SimpleWorker([queue], connection=queue.connection).work(burst=True)
    for number, handler in before:
        signal.signal(number, handler)
    assert {job.get_status() for job in jobs} == {"failed"}
    assert Counter(attempts) == {
        "both retry": 9,
        "the call retries": 3,
        "the queue retries": 3,
        "another policy": 3,
    }


# The library's own outer retries.


def test_a_retry_around_a_call_that_has_given_up_makes_no_further_attempt(
    tasks, attempts
):
    outer = Policy(schedule=[1, 1], on=OSError)
    assert not outer.run(tasks.reserve, "book").ok
    assert len(attempts) == 3


@pytest.mark.parametrize(("nested", "most"), [("respect", 3), ("retry", 9)])
def test_a_durable_job_around_a_call_that_has_given_up(tasks, attempts, nested, most):
    policy = Policy(schedule=[1, 1], on=OSError, nested=nested)
    job = Job(tasks.reserve, policy, "reserve")
    envelope = job.envelope("reserve-7")
    while envelope.status == "waiting":
        envelope = job.attempt(envelope, ["book"], {}).envelope
    assert envelope.status == "dead"
    assert len(attempts) == most


def test_the_time_limit_of_rq_ends_a_call_whose_policy_lets_it_through():
    def work():
        calls.append(1)
        raise JobTimeoutException

    calls = []
    policy = Policy(schedule=[0, 0], give_up_on=JobTimeoutException)
    with pytest.raises(JobTimeoutException):
        policy.call(work)
    assert len(calls) == 1

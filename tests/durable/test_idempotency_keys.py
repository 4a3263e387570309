"""idempotency_key: the name of an attempt, for side effects that happen once."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrykit import Policy, current_state, retry
from retrykit.durable import Job, idempotency_key
from tests._support.durable_jobs import HOURLY, JobHarness, fail_to_connect


class TestTheIdempotencyKey:
    def test_identifies_the_attempt(self, make_job):
        keys = []

        def fetch():
            keys.append(idempotency_key())
            fail_to_connect()

        harness = make_job(fetch)
        for _ in range(3):
            harness.envelope = harness().envelope
        assert keys == ["job-7:1", "job-7:2", "job-7:3"]

    def test_is_the_same_when_the_attempt_is_repeated(self, make_job):
        keys = []
        harness = make_job(lambda: keys.append(idempotency_key()))
        harness()
        harness()
        assert keys == ["job-7:1", "job-7:1"]

    def test_is_available_inside_retried_calls(self):
        keys = []

        @retry(schedule=[0])
        def inner():
            keys.append((idempotency_key(), current_state().attempt))
            raise ConnectionError

        attempt = JobHarness("sync", inner, HOURLY.replace(nested="retry"))()
        assert keys == [("job-7:1", 1), ("job-7:1", 2)]
        assert attempt.envelope.status == "waiting"

    @pytest.mark.needs("threads")
    def test_is_available_in_tasks_of_the_attempt(self):
        async def fetch():
            task = asyncio.create_task(message())
            return [await asyncio.to_thread(idempotency_key), await task]

        async def message():
            return idempotency_key()

        async def main():
            job = Job(fetch, HOURLY)
            return await job.aattempt(job.envelope("job-7"), [], {})

        assert asyncio.run(main()).result == ["job-7:1"] * 2

    @pytest.mark.needs("threads")
    def test_is_available_in_a_thread_with_a_copy_of_the_context(self):
        def fetch():
            context = contextvars.copy_context()
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(context.run, idempotency_key).result()

        assert JobHarness("sync", fetch)().result == "job-7:1"

    @pytest.mark.needs("threads")
    def test_is_not_available_in_a_bare_thread(self):
        """Like the state: nothing shows to which job the thread belongs."""
        errors = []

        def read_both():
            for each in (idempotency_key, current_state):
                with pytest.raises(LookupError) as caught:
                    each()
                errors.append(caught.value)

        def fetch():
            thread = threading.Thread(target=read_both)
            thread.start()
            thread.join()

        JobHarness("sync", fetch)()
        assert len(errors) == 2

    def test_is_unchanged_in_a_task_that_outlives_the_attempt(self):
        async def late(over):
            await over.wait()
            return idempotency_key()

        async def main():
            over, tasks = asyncio.Event(), []

            async def fetch():
                tasks.append(asyncio.create_task(late(over)))

            job = Job(fetch, HOURLY)
            await job.aattempt(job.envelope("job-7"), [], {})
            await job.aattempt(job.envelope("job-8"), [], {})
            over.set()
            with pytest.raises(LookupError):
                idempotency_key()
            return await asyncio.gather(*tasks)

        assert asyncio.run(main()) == ["job-7:1", "job-8:1"]

    def test_raises_outside_of_jobs(self):
        message = "idempotency_key() must be called within an attempt of a durable job"
        with pytest.raises(LookupError) as caught:
            idempotency_key()
        assert str(caught.value) == message
        with pytest.raises(LookupError):
            Policy(max_attempts=1).call(idempotency_key)

    def test_differs_between_concurrent_jobs(self):
        async def fetch():
            before = idempotency_key()
            await asyncio.sleep(0)
            return before == idempotency_key() and before

        async def main():
            job = Job(fetch, HOURLY)
            jobs = (job.aattempt(job.envelope(f"{n}"), [], {}) for n in range(5))
            return [attempt.result for attempt in await asyncio.gather(*jobs)]

        assert asyncio.run(main()) == ["0:1", "1:1", "2:1", "3:1", "4:1"]

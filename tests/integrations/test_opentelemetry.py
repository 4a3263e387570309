"""Spans and metrics of OpenTelemetry."""

import asyncio
import gc
import re
import threading
import weakref
from pathlib import Path

import pytest
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode, get_current_span

from retrykit import (
    GiveUp,
    Policy,
    RetryState,
    aretry,
    aretrying,
    observe,
    resume,
    retry,
    retrying,
)
from retrykit._internal.clocks import wall
from retrykit.budgets import TokenBucket, shared
from retrykit.durable import Job
from retrykit.integrations.opentelemetry import observer
from tests._support.concurrency import in_own_context
from tests._support.telemetry_collector import Collected, values_of

pytestmark = pytest.mark.usefixtures("clock")

POLICY = Policy(schedule=[1, 100], on=OSError)


@pytest.fixture
def collected():
    collected = Collected()
    before = otel_context.get_current()
    yield collected
    # No test may leave its spans to the next one.
    assert otel_context.get_current() is before
    collected.close()


@pytest.fixture
def calls(collected):
    """Record every call; spans are children of the span "request"."""
    with observe(observer(**collected.providers)):
        with collected.tracer.start_as_current_span("request"):
            yield collected


def fail(error=OSError):
    raise error


def fails(times, value="done"):
    """Return a function that fails so often, and its spans while it runs."""
    errors = iter([OSError("secret")] * times)

    def fetch():
        for error in errors:
            raise error
        return value

    return fetch


NAME = "tests.integrations.test_opentelemetry.fails.<locals>.fetch"


def test_each_attempt_is_a_span_under_the_span_of_the_caller(backend, collected):
    fetch = backend(POLICY, observers=[observer(**collected.providers)])(fails(2))
    with collected.tracer.start_as_current_span("request") as request:
        fetch()
        assert get_current_span() is request
    assert [span.name for span in collected.attempts] == [f"attempt {NAME}"] * 3
    parents = {span.parent.span_id for span in collected.attempts}
    assert parents == {request.get_span_context().span_id}
    assert [dict(span.attributes) for span in collected.attempts] == [
        attributes(1) | {"error.type": "OSError"},
        attributes(2) | {"error.type": "OSError"},
        attributes(3),
    ]
    codes = [span.status.status_code for span in collected.attempts]
    assert codes == [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET]


def attributes(attempt, **others):
    return {
        "retrykit.function": NAME,
        "retrykit.attempt": attempt,
        "code.function.name": NAME,
    } | others


def test_each_attempt_links_to_the_one_before(calls):
    retry(POLICY)(fails(2))()
    first, second, third = calls.attempts
    assert first.links == ()
    assert [link.context for link in second.links] == [first.context]
    assert [link.context for link in third.links] == [second.context]


def test_the_span_of_the_attempt_is_current_during_the_attempt(backend, calls):
    def fetch():
        with calls.tracer.start_as_current_span(f"query {len(seen)}"):
            seen.append(get_current_span())
        raise OSError

    seen = []
    with pytest.raises(OSError):
        backend(POLICY)(fetch)()
    inner = [calls.span(f"query {number}").parent for number in range(3)]
    assert inner == [span.context for span in calls.attempts]


def test_during_a_delay_the_span_of_the_caller_is_current(calls):
    seen = []
    policy = POLICY.replace(
        observers={"retry_scheduled": lambda _: seen.append(get_current_span())}
    )
    request = get_current_span()
    with observe(lambda event: seen.append((event.kind, get_current_span()))):
        policy.run(fails(1))
    # The observer of the policy is notified before, those of the process after it.
    kinds = dict(each for each in seen if isinstance(each, tuple))
    assert kinds["retry_scheduled"] is request
    assert kinds["succeeded"] is request
    assert kinds["attempt_started"] is not request


def test_a_last_attempt_has_the_reason_of_the_end(calls):
    with pytest.raises(OSError):
        retry(POLICY, max_attempts=2)(fails(5))()
    reasons = [span.attributes.get("retrykit.reason") for span in calls.attempts]
    assert reasons == [None, "attempts"]
    assert get_current_span().name == "request"


def test_the_texts_of_errors_are_not_recorded(calls):
    with pytest.raises(OSError):
        retry(POLICY)(fails(5))()
    for span in calls.attempts:
        assert span.status.description is None
        assert span.events == ()
    assert "secret" not in "".join(span.to_json() for span in calls.spans)


def test_arguments_and_results_are_not_recorded(calls):
    answers = iter([OSError("s3cret"), ["s3cret"], {"s3cret": 1}])

    @retry(POLICY, on_result=is_list)
    def fetch(token, *, body):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    fetch("s3cret", body=b"s3cret")
    written = "".join(span.to_json() for span in calls.spans)
    written += "".join(each.to_json() for each in calls.metrics.values())
    assert len(calls.attempts) == 3
    assert "s3cret" not in written
    assert "rejected_result" in written


def is_list(result):
    return isinstance(result, list)


def test_the_consumer_of_a_stream_keeps_its_span(calls):
    failures = iter([OSError("secret")])

    @retry(POLICY, stream="restart")
    def rows():
        with calls.tracer.start_as_current_span("query"):
            pass
        yield 1
        for error in failures:
            raise error

    request = get_current_span()
    with calls.tracer.start_as_current_span("consume") as consume:
        for _ in rows():
            assert get_current_span() is consume
    assert get_current_span() is request
    first, second = calls.attempts
    assert second.links[0].context == first.get_span_context()
    assert first.status.status_code is StatusCode.ERROR
    spans = {each.name for each in calls.spans}
    assert spans >= {"query", "consume"}
    own = consume.get_span_context().span_id
    children = [each.name for each in calls.spans if each.parent.span_id == own]
    assert children.count("query") == len(calls.attempts) == 2


def test_an_async_stream_that_is_closed_elsewhere_ends_its_span(calls):
    @aretry(POLICY, stream="restart")
    async def rows():
        yield 1
        yield 2

    async def main():
        stream = rows()
        await asyncio.create_task(anext(stream))
        await asyncio.create_task(stream.aclose())
        return get_current_span()

    request = get_current_span()
    assert asyncio.run(main()) is request
    assert len(calls.attempts) == 1


def test_a_nested_call_is_under_the_attempt_that_makes_it(calls):
    inner = retry(POLICY)(fails(1))

    @retry(POLICY)
    def outer():
        inner()
        raise GiveUp(OSError())

    with pytest.raises(OSError):
        outer()
    *nested, around = calls.attempts
    assert [span.parent for span in nested] == [around.context] * 2
    assert around.parent == get_current_span().get_span_context()


def test_a_call_in_a_thread_that_an_attempt_starts_has_its_own_spans(calls):
    @retry(POLICY)
    def outer():
        # Virtual time is that of this thread alone.
        thread = threading.Thread(target=retry(POLICY, schedule=[0])(fails(1)))
        thread.start()
        thread.join()

    outer()
    first, second, around = calls.attempts
    assert [first.parent, second.parent] == [None, None]
    assert around.parent == get_current_span().get_span_context()


def test_tasks_do_not_see_each_others_spans(calls):
    async def fetch(number):
        await asyncio.sleep(0)
        with calls.tracer.start_as_current_span(f"query {number}"):
            await asyncio.sleep(0)
        failures.setdefault(number, 0)
        failures[number] += 1
        if failures[number] < 3:
            raise OSError

    async def main():
        async with asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(aretry(POLICY, seed=number)(fetch)(number))

    failures = {}
    asyncio.run(main())
    attempts = {span.context.span_id for span in calls.attempts}
    queries = [span for span in calls.spans if span.name.startswith("query")]
    assert len(attempts) == len(queries) == 30
    assert {span.parent.span_id for span in queries} == attempts
    links = [link.context.span_id for span in calls.attempts for link in span.links]
    assert len({*links}) == 20


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
def test_an_interrupted_attempt_ends_its_span(backend, calls, error):
    def interrupt():
        raise error

    request = get_current_span()
    with pytest.raises(error):
        backend(POLICY)(interrupt)()
    assert get_current_span() is request
    [span] = calls.attempts
    assert span.attributes["retrykit.reason"] == "cancelled"
    assert span.status.status_code is StatusCode.UNSET


def test_an_attempt_whose_result_cannot_be_judged_has_failed(calls):
    with pytest.raises(ZeroDivisionError):
        POLICY.replace(on_result=lambda result: 1 / 0).call(fails(0))
    [span] = calls.attempts
    assert span.attributes["error.type"] == "ZeroDivisionError"
    assert span.attributes["retrykit.reason"] == "not_retryable"
    assert span.status.status_code is StatusCode.ERROR


def test_an_interrupted_delay_ends_no_span_twice(calls):
    def interrupt(delay):
        raise KeyboardInterrupt

    policy = POLICY.replace(observers={"retry_scheduled": interrupt})
    with pytest.raises(KeyboardInterrupt):
        policy.call(fails(1))
    assert len(calls.attempts) == 1


def test_the_attempts_of_a_block_are_spans(calls):
    fetch = fails(1)
    for attempt in retrying(POLICY, name="reports"):
        with attempt:
            with calls.tracer.start_as_current_span(f"query {attempt.number}"):
                fetch()
    first, second = calls.attempts
    assert first.name == second.name == "attempt reports"
    assert calls.span("query 1").parent == first.context
    assert calls.span("query 2").parent == second.context
    assert "code.function.name" not in first.attributes


def test_the_attempts_of_an_async_block_are_spans(calls):
    async def main():
        fetch = fails(1)
        async for attempt in aretrying(POLICY, name="reports"):
            with attempt:
                await asyncio.sleep(0)
                fetch()

    asyncio.run(main())
    first, second = calls.attempts
    assert [link.context for link in second.links] == [first.context]


def test_a_call_that_ends_in_another_context_leaves_that_alone(calls, caplog):
    async def numbers():
        for attempt in retrying(POLICY, name="numbers"):
            with attempt:
                yield 1

    async def main():
        generator = numbers()
        await asyncio.create_task(anext(generator))
        with calls.tracer.start_as_current_span("other") as other:
            await generator.aclose()
            assert get_current_span() is other

    asyncio.run(main())
    assert caplog.text == ""


@in_own_context
def test_a_block_that_is_left_before_its_attempt_is_left_with_the_attempt_around_it(
    calls,
):
    @retry(POLICY)
    def outer():
        for _ in retrying(POLICY, name="abandoned"):
            break

    request = otel_context.get_current()
    outer()
    assert otel_context.get_current() is request
    [span] = calls.attempts
    assert span.attributes["retrykit.function"] != "abandoned"


def test_a_task_that_outlives_its_call_keeps_nothing_of_it(calls):
    kept = []

    @retry(POLICY)
    def start():
        kept.append(otel_context.get_current())
        fetch()

    fetch = fails(1)
    start()
    [spans] = [
        value
        for value in kept[-1].values()
        if type(value).__module__.startswith("retrykit")
    ]
    assert spans.record is spans.last is spans.running is None


def test_the_locals_of_attempts_die_with_their_call(calls):
    class Local: ...

    def fetch():
        local = Local()
        locals_.append(weakref.ref(local))
        raise OSError

    locals_ = []
    gc.disable()
    try:
        with pytest.raises(OSError):
            retry(POLICY)(fetch)()
        assert [each() for each in locals_] == [None] * 3
    finally:
        gc.enable()


def test_a_durable_job_makes_one_span_in_each_process(calls):
    job, before = Job(fail, POLICY, "verify"), otel_context.get_current()
    after = job.attempt(job.envelope("verify-1"), [], {}).envelope
    assert otel_context.get_current() is before
    job.attempt(after, [], {})
    first, second = calls.attempts
    assert first.name == "attempt job"
    assert [s.attributes["retrykit.attempt"] for s in calls.attempts] == [1, 2]
    assert second.links == ()


def test_a_resumed_call_continues_to_count(calls):
    with pytest.raises(OSError):
        policy = POLICY.replace(max_attempts=1)
        retry(policy)(fails(1))()
    state = RetryState("fetch", 7, 0.0, attempt=2, next_delay=5.0)
    resume(retry(POLICY)(fails(0)), state)()
    assert [s.attributes["retrykit.attempt"] for s in calls.attempts] == [1, 3]


def test_with_failures_only_a_call_that_succeeds_at_once_has_no_span(collected):
    with observe(observer(**collected.providers), failures_only=True):
        with collected.tracer.start_as_current_span("request") as request:
            retry(POLICY)(fails(0))()
            retry(POLICY)(fails(1))()
            with pytest.raises(ValueError):
                retry(POLICY)(fail)(ValueError)
            assert get_current_span() is request
    first, second, alone = collected.attempts
    assert [link.context for link in second.links] == [first.context]
    parents = [span.parent for span in collected.attempts]
    assert parents == [request.get_span_context()] * 3
    assert alone.attributes["retrykit.reason"] == "not_retryable"


def test_a_span_that_is_made_afterwards_has_the_duration_of_the_attempt(
    collected, clock
):
    def fetch():
        clock.advance(0.25)
        raise OSError

    with observe(observer(**collected.providers), failures_only=True):
        with pytest.raises(OSError):
            Policy(max_attempts=1).call(fetch)
    [span] = collected.attempts
    # Virtual time, unlike that of the SDK.
    assert span.start_time == pytest.approx((wall() - 0.25) * 1e9, rel=1e-15)


def test_spans_that_are_not_sampled_are_followed_like_others(collected):
    collected.tracers.sampler = ALWAYS_OFF
    seen = []

    def fetch():
        seen.append(get_current_span().get_span_context().trace_flags.sampled)
        if len(seen) < 3:
            raise OSError

    with observe(observer(**collected.providers)):
        retry(POLICY)(fetch)()
    assert seen == [False] * 3
    assert collected.spans == ()
    assert len(collected.points("retrykit.attempts")) == 2


@pytest.fixture
def events(collected):
    """Record every call as events of the span "request", and return these."""

    def read():
        [span] = collected.spans
        return [(each.name, dict(each.attributes)) for each in span.events]

    with observe(observer(spans="event", **collected.providers)):
        yield read


def test_events_of_the_callers_span_take_the_place_of_spans(collected, events):
    with collected.tracer.start_as_current_span("request"):
        retry(POLICY)(fails(1))()
        retry(POLICY)(fails(0))()
        with pytest.raises(OSError):
            retry(POLICY, max_attempts=1)(fails(1))()
    # A call that succeeds at once has none.
    assert events() == [
        ("retrykit.attempt_failed", attributes(1) | {"error.type": "OSError"}),
        ("retrykit.retry_scheduled", attributes(1) | {"retrykit.retry.delay": 1.0}),
        ("retrykit.succeeded", attributes(2)),
        ("retrykit.attempt_failed", attributes(1) | {"error.type": "OSError"}),
        ("retrykit.gave_up", attributes(1) | {"retrykit.reason": "attempts"}),
    ]


def test_a_job_that_waits_is_an_event(collected, events):
    job = Job(fail, POLICY, "verify")
    with collected.tracer.start_as_current_span("request"):
        job.attempt(job.envelope("verify-1"), [], {})
    assert [name for name, _ in events()] == [
        "retrykit.attempt_failed",
        "retrykit.retry_scheduled",
        "retrykit.suspended",
    ]


def test_without_a_span_of_the_caller_there_are_no_events(collected, events):
    retry(POLICY)(fails(1))()
    assert collected.spans == ()
    assert collected.points("retrykit.retries") != []


_GAUGES = {"retrykit.budget.balance", "retrykit.limit.state"}


def counted(collected):
    names = [name for name in collected.metrics if name not in _GAUGES]
    return {name: values_of(collected.points(name)) for name in names}


def test_attempts_retries_and_calls_are_counted(backend, collected):
    count = observer(spans=None, **collected.providers)
    fetch = backend(POLICY, observers=[count])
    fetch(fails(0))()
    fetch(fails(2))()
    with pytest.raises(OSError):
        fetch(fails(9))()
    assert collected.spans == ()
    # Of each attribute by the order of their names.
    assert counted(collected) == {
        "retrykit.attempts": {
            ("OSError", NAME, "failed"): 5,
            (NAME, "succeeded"): 2,
        },
        "retrykit.retries": {("OSError", NAME): 4},
        "retrykit.calls": {
            (NAME, "succeeded", False): 1,
            (NAME, "succeeded", True): 1,
            (NAME, "gave_up", True): 1,
        },
        "retrykit.give_ups": {("OSError", NAME, "schedule_ended"): 1},
        "retrykit.retry.delay": {(NAME,): (4, 202.0)},
        "retrykit.call.elapsed": {
            (NAME, "succeeded"): (2, 101.0),
            (NAME, "gave_up"): (1, 101.0),
        },
    }


def test_a_cancelled_call_has_not_given_up(collected):
    with observe(observer(spans=None, **collected.providers)):
        with pytest.raises(KeyboardInterrupt):
            POLICY.call(fail, KeyboardInterrupt)
    found = counted(collected)
    name = "tests.integrations.test_opentelemetry.fail"
    assert found["retrykit.attempts"] == {("KeyboardInterrupt", name, "interrupted"): 1}
    assert found["retrykit.calls"] == {(name, "cancelled", False): 1}
    assert "retrykit.give_ups" not in found


def test_metrics_have_units_and_buckets_of_seconds(calls):
    retry(POLICY)(fails(1))()
    units = {name: metric.unit for name, metric in calls.metrics.items()}
    assert units["retrykit.attempts"] == "{attempt}"
    assert units["retrykit.retry.delay"] == units["retrykit.call.elapsed"] == "s"
    for name in ("retrykit.retry.delay", "retrykit.call.elapsed"):
        [point] = calls.points(name)
        bounds = point.explicit_bounds
        assert (bounds[0], bounds[-1]) == (0.01, 86400.0)


def test_an_exemplar_names_the_attempt(collected):
    # Not under a span of the caller.
    with observe(observer(**collected.providers)):
        with pytest.raises(OSError):
            retry(POLICY, max_attempts=2)(fails(2))()
    first, second = (span.context.span_id for span in collected.attempts)
    # Collected together: the SDK then forgets the exemplars.
    metrics = collected.metrics
    [delay] = metrics["retrykit.retry.delay"].data.data_points
    [elapsed] = metrics["retrykit.call.elapsed"].data.data_points
    assert [each.span_id for each in delay.exemplars] == [first]
    assert [each.span_id for each in elapsed.exemplars] == [second]


def test_balances_of_budgets_are_a_gauge(collected):
    shared("key:orders", lambda: TokenBucket(50))
    budget = TokenBucket(100, cost=40)
    observer(budgets={"payments": budget}, **collected.providers)
    budget.withdraw(OSError())
    balances = values_of(collected.points("retrykit.budget.balance"))
    assert balances[("payments",)] == 60.0
    assert balances[("key:orders",)] == 50.0


def test_names_are_bounded(collected, caplog):
    with observe(observer(max_names=1, **collected.providers)):
        for name in ("first", "second", "third"):
            for attempt in retrying(name=name):
                with attempt:
                    pass
    names = [span.name for span in collected.attempts]
    assert names == ["attempt first", "attempt other", "attempt other"]
    assert len(collected.points("retrykit.calls")) == 2
    assert len(caplog.records) == 1


def test_the_page_has_every_attribute_and_metric(collected):
    page = Path(__file__).parents[2] / "docs" / "observability.md"
    with observe(observer(**collected.providers)):
        with pytest.raises(OSError):
            retry(POLICY)(fails(9))()
    used = {key for span in collected.attempts for key in span.attributes}
    names = {*collected.metrics}
    listed = {*re.findall(r"^\| `([\w.]+)` \|", page.read_text("utf-8"), re.MULTILINE)}
    assert used | names <= listed

"""What telemetry says of refusals, of hedges, and of the states of limits."""

import asyncio
import logging

import pytest
from opentelemetry import context as otel_context
from prometheus_client import CollectorRegistry

from retrykit import Hedge, Policy, RefusedError, observe, retry
from retrykit.events import GaveUp
from retrykit.integrations import opentelemetry, prometheus
from retrykit.integrations.logging import observer as log_observer
from retrykit.integrations.prometheus import LimitCollector
from retrykit.limits import CircuitBreaker, Lease, Limit, Registry, shared
from retrykit.testing import virtual_time
from tests._support import sentry_events
from tests._support.telemetry_collector import Collected, values_of

pytestmark = pytest.mark.usefixtures("clock")

initialize, sent = sentry_events.initialize, sentry_events.sent

NAME = f"{__name__}.fetch"


def fetch():
    raise OSError


def isolated(**settings):
    breaker = CircuitBreaker(name="api")
    breaker.isolate()
    return Policy(schedule=[1], on=OSError, admission=[breaker], **settings)


def opening():
    """Return a policy whose first failure opens its breaker."""
    breaker = CircuitBreaker(consecutive_failures=1, name="api")
    return Policy(schedule=[1], on=OSError, admission=[breaker])


@pytest.fixture
def collected():
    collected = Collected()
    before = otel_context.get_current()
    yield collected
    assert otel_context.get_current() is before
    collected.close()


@pytest.fixture
def page():
    """Return a function of the samples of a metric on the page of Prometheus."""
    registry = CollectorRegistry()

    def samples(name):
        return {
            tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
            for family in registry.collect()
            for sample in family.samples
            if sample.name == name
        }

    samples.registry = registry
    return samples


def test_a_refused_call_has_no_attempt_and_gave_up(page):
    with observe(prometheus.observer(registry=page.registry)):
        with pytest.raises(RefusedError):
            retry(isolated())(fetch)()
    assert page("retrykit_attempts_total") == {}
    assert page("retrykit_give_ups_total") == {
        ("retrykit.errors.RefusedError", NAME, "refused"): 1
    }
    assert page("retrykit_calls_total") == {(NAME, "gave_up", "false"): 1}


def test_a_call_that_opens_its_breaker_gave_up_with_its_error(page, collected):
    with observe(prometheus.observer(registry=page.registry)):
        with observe(opentelemetry.observer(**collected.providers)):
            with pytest.raises(OSError):
                retry(opening())(fetch)()
    assert page("retrykit_attempts_total") == {("OSError", NAME, "failed"): 1}
    assert page("retrykit_give_ups_total") == {("OSError", NAME, "refused"): 1}
    [span] = collected.attempts
    assert span.attributes["retrykit.reason"] == "refused"


@pytest.mark.parametrize("spans", ["span", "event"])
def test_a_refused_call_is_an_event_of_the_span_of_the_caller(collected, spans):
    with observe(opentelemetry.observer(spans=spans, **collected.providers)):
        with collected.tracer.start_as_current_span("request"):
            with pytest.raises(RefusedError):
                retry(isolated())(fetch)()
    assert collected.attempts == []
    [event] = collected.span("request").events
    assert event.name == "retrykit.gave_up"
    assert dict(event.attributes) == {
        "code.function.name": NAME,
        "retrykit.function": NAME,
        "retrykit.attempt": 0,
        "retrykit.reason": "refused",
    }
    assert collected.points("retrykit.attempts") == []
    assert values_of(collected.points("retrykit.give_ups")) == {
        ("retrykit.errors.RefusedError", NAME, "refused"): 1
    }


class Stop(asyncio.Event):
    def is_set(self):
        return True


def test_a_call_that_is_stopped_while_it_is_refused_has_a_type_of_error(page):
    policy = isolated(on_refused="wait", stop_event=Stop())

    async def never():
        raise AssertionError

    with observe(prometheus.observer(registry=page.registry)):
        asyncio.run(policy.arun(never))
    [(error, _, reason)] = page("retrykit_give_ups_total")
    assert (error, reason) == ("retrykit.errors.RetryError", "stopped")


def test_a_refused_call_is_an_error_in_the_log(caplog):
    with observe(log_observer()):
        with pytest.raises(RefusedError):
            retry(isolated())(fetch)()
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    text = "fetch gave up before its first attempt: circuit breaker 'api' is isolated"
    assert text in record.getMessage()


def test_sentry_gets_an_event_of_a_failure_and_none_of_a_refusal_alone(sent):
    with pytest.raises(RefusedError):
        retry(isolated())(fetch)()
    assert sent == []
    with pytest.raises(OSError):
        retry(opening())(fetch)()
    [event] = sent
    assert event["tags"]["retry.reason"] == "refused"
    assert event["exception"]["values"][-1]["type"] == "OSError"


def hedged_call(*observers):
    """Make a call whose attempt is sent twice."""
    hedge = Hedge("50ms", idempotent=True)

    async def slow():
        await asyncio.sleep(1)

    async def main():
        await Policy(hedge=hedge, observers=observers, name="slow").acall(slow)

    with virtual_time() as clock:
        with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
            runner.run(main())


def test_hedges_are_counted(page, collected):
    hedged_call(
        prometheus.observer(registry=page.registry),
        opentelemetry.observer(**collected.providers),
    )
    [((function,), count)] = page("retrykit_hedges_total").items()
    assert function.endswith("slow")
    assert count == 1
    assert page("retrykit_attempts_total") == {("", function, "succeeded"): 1}
    assert values_of(collected.points("retrykit.hedges")) == {(function,): 1}
    [span] = collected.attempts
    [event] = span.events
    assert event.name == "retrykit.hedge_started"
    assert event.attributes["retrykit.send"] == 2


def test_a_hedge_is_an_event_of_the_span_of_the_caller(collected):
    with collected.tracer.start_as_current_span("request"):
        hedged_call(opentelemetry.observer(spans="event", **collected.providers))
    [event] = collected.span("request").events
    assert event.name == "retrykit.hedge_started"
    assert event.attributes["retrykit.send"] == 2


def test_a_hedge_is_logged_at_the_level_of_choice(caplog):
    caplog.set_level(logging.DEBUG)
    hedged_call(log_observer())
    hedged_call(log_observer(levels={"hedge_started": "INFO"}))
    [record] = [x for x in caplog.records if x.name == "retrykit"]
    assert record.getMessage() == "slow: attempt 1 takes long: send 2 has started"


class Broken(Limit):
    """Has no state."""

    @property
    def state(self):
        raise OSError

    def acquire(self):
        return Lease()


def test_states_of_limits_are_read_at_each_scrape(page):
    shared("key:stages", CircuitBreaker)
    breaker, hosts = CircuitBreaker(), Registry(CircuitBreaker)
    hosts["api.example"].isolate()
    page.registry.register(LimitCollector({"orders": breaker, "hosts": hosts}))
    name = "retrykit_limit_state"
    assert page(name)["orders", "closed"] == 1
    assert page(name)["key:stages", "closed"] == 1
    assert page(name)["hosts:api.example", "isolated"] == 1
    breaker.open()
    assert page(name)["orders", "open"] == 1
    assert ("orders", "closed") not in page(name)


def test_a_limit_that_fails_leaves_the_rest_of_the_page(page, caplog):
    limits = {"a": Broken(), "b": CircuitBreaker()}
    page.registry.register(LimitCollector(limits, prefix="shop"))
    found = {limit for limit, _ in page("shop_limit_state")}
    assert "b" in found
    assert "a" not in found
    assert "the state of limit a failed" in caplog.text


def test_the_limits_of_a_registry_are_bounded(page):
    hosts = Registry(CircuitBreaker)
    for number in range(5):
        hosts[number].close()
    page.registry.register(LimitCollector({"hosts": hosts}, max_shared=2))
    found = {limit for limit, _ in page("retrykit_limit_state")}
    assert {each for each in found if each.startswith("hosts")} == {
        "hosts:3",
        "hosts:4",
    }


def test_states_of_limits_are_a_gauge(collected):
    breaker = CircuitBreaker()
    shared("key:stages", CircuitBreaker)
    opentelemetry.observer(limits={"orders": breaker}, **collected.providers)
    breaker.open()
    states = values_of(collected.points("retrykit.limit.state"))
    assert states["orders", "open"] == 1
    assert states["key:stages", "closed"] == 1


def test_an_event_of_a_call_that_was_never_made_has_no_failure():
    events = []
    with observe(events.append):
        isolated().run(fetch)
    [event] = events
    assert isinstance(event, GaveUp)
    assert event.state.attempt == 0

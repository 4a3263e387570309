"""Metrics of Prometheus, as a real page has them."""

import threading
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from retrykit import Policy, observe, retrying
from retrykit.budgets import Budget, TokenBucket, shared
from retrykit.integrations.prometheus import BudgetCollector, observer

POLICY = Policy(schedule=[1, 100], on=OSError)
NAME = "tests.integrations.test_prometheus.fails.<locals>.fetch"


class Page:
    """A page of metrics of a registry, on a free port of loopback."""

    def __init__(self):
        self.registry = CollectorRegistry()
        self._server, self._thread = start_http_server(0, "127.0.0.1", self)
        self._url = f"http://127.0.0.1:{self._server.server_port}/metrics"

    def collect(self):
        return self.registry.collect()

    @property
    def text(self):
        with urlopen(self._url, timeout=10) as response:  # noqa: S310  of this test
            return response.read().decode()

    @property
    def families(self):
        return {each.name: each for each in text_string_to_metric_families(self.text)}

    def samples(self, name):
        """Return the values of a metric by the values of its labels, in order."""
        return {
            tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
            for family in self.families.values()
            for sample in family.samples
            if sample.name == name
        }

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def server():
    page = Page()
    yield page
    page.close()


@pytest.fixture
def page(server):
    server.registry = CollectorRegistry()
    return server


def fails(times, error=OSError):
    errors = iter([error("secret")] * times)

    def fetch(*args):
        for each in errors:
            raise each
        return "secret"

    return fetch


@pytest.mark.usefixtures("clock")
def test_attempts_retries_and_calls_are_on_the_page(backend, page):
    fetch = backend(POLICY, observers=[observer(registry=page.registry)])
    fetch(fails(0))("secret")
    fetch(fails(2))()
    with pytest.raises(OSError):
        fetch(fails(9))()
    assert page.samples("retrykit_attempts_total") == {
        # error_type, function, outcome
        ("OSError", NAME, "failed"): 5,
        ("", NAME, "succeeded"): 2,
    }
    assert page.samples("retrykit_retries_total") == {("OSError", NAME): 4}
    assert page.samples("retrykit_calls_total") == {
        # function, outcome, retried
        (NAME, "succeeded", "false"): 1,
        (NAME, "succeeded", "true"): 1,
        (NAME, "gave_up", "true"): 1,
    }
    assert page.samples("retrykit_give_ups_total") == {
        # error_type, function, reason
        ("OSError", NAME, "schedule_ended"): 1,
    }
    assert page.samples("retrykit_retry_delay_seconds_sum") == {(NAME,): 202}
    assert page.samples("retrykit_call_elapsed_seconds_sum") == {
        (NAME, "succeeded"): 101,
        (NAME, "gave_up"): 101,
    }
    assert "secret" not in page.text


@pytest.mark.usefixtures("clock")
def test_a_delay_is_in_the_bucket_of_its_seconds(page):
    with observe(observer(registry=page.registry)):
        POLICY.run(fails(1))
    buckets = page.samples("retrykit_retry_delay_seconds_bucket")
    assert (buckets[NAME, "0.5"], buckets[NAME, "1.0"]) == (0, 1)
    assert (NAME, "86400.0") in buckets


def test_a_cancelled_call_has_not_given_up(page):
    with observe(observer(registry=page.registry)):
        with pytest.raises(KeyboardInterrupt):
            POLICY.call(fails(1, KeyboardInterrupt))
    attempts = page.samples("retrykit_attempts_total")
    assert attempts == {("KeyboardInterrupt", NAME, "interrupted"): 1}
    calls = page.samples("retrykit_calls_total")
    assert calls == {(NAME, "cancelled", "false"): 1}
    assert page.samples("retrykit_give_ups_total") == {}


def test_a_call_that_is_stopped_at_once_has_given_up(page):
    stop = threading.Event()
    stop.set()
    with observe(observer(registry=page.registry)):
        POLICY.replace(stop_event=stop).run(fails(1))
    assert page.samples("retrykit_give_ups_total") == {("OSError", NAME, "stopped"): 1}


@pytest.mark.usefixtures("clock")
def test_with_failures_only_calls_that_succeed_at_once_are_not_counted(page):
    with observe(observer(registry=page.registry), failures_only=True):
        POLICY.run(fails(0))
        POLICY.run(fails(1))
    assert page.samples("retrykit_calls_total") == {(NAME, "succeeded", "true"): 1}
    assert sum(page.samples("retrykit_attempts_total").values()) == 2


def test_labels_are_bounded(page):
    with observe(observer(registry=page.registry, max_names=3)):
        for number in range(50):
            for attempt in retrying(name=f"block {number}"):
                with attempt:
                    pass
            error = type(f"Error{number}", (Exception,), {"__module__": "shop"})
            Policy(max_attempts=1).run(fails(1, error))
    names = {name for name, *_ in page.samples("retrykit_calls_total")}
    assert names == {"block 0", NAME, "block 1", "other"}
    errors = {error for error, *_ in page.samples("retrykit_give_ups_total")}
    assert errors == {"shop.Error0", "shop.Error1", "shop.Error2", "_OTHER"}


def test_metrics_have_the_prefix_of_choice(page):
    observer(registry=page.registry, prefix="shop_retries")
    observer(registry=page.registry)
    page.registry.register(BudgetCollector(prefix="shop"))
    assert "shop_retries_attempts" in page.families
    assert "retrykit_attempts" in page.families
    assert "shop_budget_balance" in page.families


def test_balances_of_budgets_are_read_at_each_scrape(page):
    shared("key:prometheus", lambda: TokenBucket(50))
    budget = TokenBucket(100, cost=40)
    page.registry.register(BudgetCollector({"payments": budget}))
    name = "retrykit_budget_balance"
    assert page.samples(name)["payments",] == 100
    budget.withdraw(OSError())
    assert page.samples(name)["payments",] == 60
    assert page.samples(name)["key:prometheus",] == 50


class Broken(Budget):
    """Has no balance."""

    @property
    def balance(self):
        raise OSError

    def withdraw(self, error, /): ...

    def deposit(self, cost, /): ...


def test_a_budget_that_fails_leaves_the_rest_of_the_page(page, caplog):
    observer(registry=page.registry)
    page.registry.register(BudgetCollector({"a": Broken(), "b": TokenBucket(5)}))
    found = page.samples("retrykit_budget_balance")
    assert found["b",] == 5
    assert ("a",) not in found
    assert "the balance of budget a failed" in caplog.text


def test_threads_count_together(page):
    count = observer(registry=page.registry)
    threads = [
        threading.Thread(
            target=Policy(schedule=[0], observers=[count], on=OSError).run,
            args=[fails(1)],
        )
        for _ in range(20)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert page.samples("retrykit_retries_total") == {("OSError", NAME): 20}

"""HTTP routes of virtual services of Istio."""

import json

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy
from retrykit.conditions import HttpFailures, StatusCodes, any_of
from retrykit.config.foreign import names, read
from retrykit.errors import AttemptTimeout

DEFAULT = any_of(
    [HttpFailures(unprocessed=True), StatusCodes(["CANCELLED", "UNAVAILABLE"])]
)


def service(*routes, version="v1", **fields):
    return {
        "apiVersion": f"networking.istio.io/{version}",
        "kind": "VirtualService",
        "metadata": {"name": "reviews"},
        "spec": {"http": [{"route": [{"destination": {}}], **x} for x in routes]},
    } | fields


def reading_of(**retries):
    return read(service({"retries": retries}))


def limits_of(schedule, count):
    return [schedule.bounds(number)[1] for number in range(1, count + 1)]


def test_a_route_is_read():
    retries = {
        "attempts": 3,
        "perTryTimeout": "2s",
        "retryOn": "gateway-error,connect-failure,429,retriable-status-codes",
        "retryRemoteLocalities": True,
        "retryIgnorePreviousHosts": False,
        "backoff": "100ms",
    }
    reading = read(service({"retries": retries, "timeout": "10s"}))
    failed = [429, 502, 503, 504]
    policy = reading.policy
    assert policy == Policy(
        schedule=policy.schedule,
        max_attempts=4,
        max_elapsed=10.0,
        on=HttpFailures(failed, connections=True),
        on_result=HttpFailures(failed),
        attempt_timeout=2.0,
    )
    assert limits_of(policy.schedule, 5) == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert (reading.name, reading.format) == ("reviews", "istio")
    assert reading.differences == reading.notes == ()


def test_a_route_without_retries_has_those_of_the_mesh():
    reading = read(service({}))
    assert reading.policy.max_attempts == 3
    assert reading.policy.on == DEFAULT
    assert reading.policy.on_result is None
    assert reading.policy.max_elapsed is None
    assert limits_of(reading.policy.schedule, 5) == [0.025, 0.05, 0.1, 0.2, 0.25]
    assert reading.notes == (
        "spec.http[0].retries: none, so those of the mesh apply: 2 by default",
        (
            "spec.http[0].retryOn: cancelled: Envoy reads it in the headers, not in"
            " trailers"
        ),
    )


@pytest.mark.parametrize("retries", [{}, {"retryOn": ""}])
def test_the_default_of_the_failures(retries):
    reading = reading_of(attempts=1, perTryTimeout="1s", **retries)
    assert reading.policy.on == DEFAULT
    assert reading.policy.give_up_on is AttemptTimeout


def test_no_attempts_disable_retries():
    reading = reading_of(attempts=0)
    assert reading.policy == Policy(max_attempts=1)
    assert reading.notes == ()
    assert reading_of().policy == Policy(max_attempts=1)
    assert reading_of(attempts=0, backoff="1s").policy == Policy(max_attempts=1)


def test_words_may_select_nothing():
    reading = reading_of(attempts=2, retryOn="retriable-status-codes")
    assert reading.policy == Policy(max_attempts=1)
    assert reading.notes == (
        "spec.http[0].retries.retryOn: selects nothing, so nothing is retried",
    )


def test_timeouts_are_told():
    retries = {"attempts": 2, "perTryTimeout": "1m", "retryOn": "5xx"}
    reading = read(service({"retries": retries, "timeout": "1.5s"}))
    assert reading.policy.attempt_timeout is None
    assert reading.notes == (
        (
            "spec.http[0].retries.perTryTimeout: has no effect, since all attempts"
            " together have 1.5 s"
        ),
        (
            "spec.http[0].timeout: also ends a running attempt; max_elapsed ends only"
            " the retries"
        ),
    )


def test_differences_are_those_of_envoy():
    with pytest.raises(ConfigError, match="retryOn: envoy-ratelimited: a response is"):
        reading_of(attempts=1, retryOn="5xx,envoy-ratelimited")


@given(st.integers(1, 100), st.integers(1, 100_000), st.sets(st.integers(400, 417)))
def test_settings_are_read(attempts, base, statuses):
    words = ",".join(["reset", *map(str, statuses)])
    policy = reading_of(attempts=attempts, backoff=f"{base}ms", retryOn=words).policy
    assert policy.max_attempts == attempts + 1
    assert policy.on == HttpFailures([*statuses], connections=True)
    assert policy.on_result == (HttpFailures([*statuses]) if statuses else None)
    limits = [min(base * 2**number, base * 10) / 1000 for number in range(6)]
    assert limits_of(policy.schedule, 6) == pytest.approx(limits)


def test_routes_are_named():
    document = service({"name": "v2"}, {}, {"retries": {"attempts": 1}})
    document["spec"]["http"] += [{"redirect": {}}, {"name": 3, "route": []}]
    assert names(document) == ["v2", "reviews", "reviews (2)", "reviews (3)"]
    nameless = service({}, metadata=None, version="v1alpha3")
    assert names({"kind": "List", "items": [document, nameless]})[4:] == [""]


@pytest.mark.parametrize(
    "document",
    [
        service({}, kind="DestinationRule"),
        service({}, apiVersion="gateway.networking.k8s.io/v1"),
        service({}, apiVersion=3),
        {"http": [{"route": []}]},
        {"spec": {"http": [{"route": []}]}},
        service(spec={"tcp": [{"route": []}], "http": "none"}),
    ],
    ids=str,
)
def test_other_documents_are_left_alone(document):
    assert names(document) == []


@pytest.mark.parametrize(
    ("retries", "message"),
    [
        ({"attempts": -1}, "attempts must be an integer >= 0"),
        ({"attempt": 1}, "no key 'attempt'; did you mean attempts?"),
        ({"attempts": 1, "backOff": "1s"}, "no key 'backOff'; did you mean backoff?"),
        (
            {"perTryTimeout": "2s"},
            "attempts must be at least 1 where other settings of retries are given",
        ),
        ({"attempts": 0, "retryOn": "5xx"}, "attempts must be at least 1"),
        ({"attempts": 0, "retryRemoteLocalities": False}, "attempts must be at least"),
        (
            {"attempts": 1, "retryOn": "gateway-errors"},
            "got 'gateway-errors'; did you mean gateway-error?",
        ),
        ({"attempts": 1, "retryOn": "5xx, reset"}, "retryOn must be words of Envoy"),
        ({"attempts": 1, "retryOn": "599"}, "retryOn must be words of Envoy"),
        ({"attempts": 1, "retryOn": "5030"}, "retryOn must be words of Envoy"),
        ({"attempts": 1, "retryOn": 503}, "retryOn must be a string, got 503"),
        ({"attempts": 1, "backoff": "0s"}, "backoff must be whole milliseconds"),
        ({"attempts": 1, "backoff": "1.5ms"}, "backoff must be whole milliseconds"),
        ({"attempts": 1, "perTryTimeout": 2}, "perTryTimeout must be a duration"),
        ({"attempts": 1, "retryIgnorePreviousHosts": 2}, "must be true or false"),
    ],
)
def test_what_istio_refuses_is_refused(retries, message):
    with pytest.raises(ConfigError) as info:
        reading_of(**retries)
    assert message in info.value.message


YAML = """\
apiVersion: networking.istio.io/v1beta1
kind: VirtualService
metadata:
  name: reviews
spec:
  http:
  - route:
    - destination: {host: reviews}
    timeout: 0s
    retries:
      attempts: 3
"""


@pytest.mark.parametrize("syntax", ["yaml", "json"])
def test_an_error_has_the_file_and_the_line(tmp_path, syntax):
    path = tmp_path / f"service.{syntax}"
    document = json.dumps(service({"timeout": "0s"}), indent=1)
    text = YAML if syntax == "yaml" else document
    path.write_text(text, "utf-8")
    before, _, _ = text.partition("timeout")
    line = before.count("\n") + 1
    with pytest.raises(ConfigError) as info:
        read(path)
    start = f"{path}, line {line}: timeout must be whole milliseconds"
    assert info.value.message.startswith(start)

"""Routes of Envoy, with the delays of its source code."""

import json
from itertools import islice

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy
from retrykit.conditions import HttpFailures, StatusCodes
from retrykit.config.foreign import names, read
from retrykit.config.rendering import to_python
from retrykit.errors import AttemptTimeout
from retrykit.hints import first_of, reset_at, retry_after


def route(policy=None, **action):
    """Return a route that matches /a, with a retry policy and more of its action."""
    own = {} if policy is None else {"retry_policy": policy}
    return {"match": {"prefix": "/a"}, "route": {"cluster": "a", **own, **action}}


def host(*routes, **fields):
    own = {"name": "h", "domains": ["*"], "routes": [*routes]}
    return {"virtual_hosts": [own | fields]}


def reading_of(timeout="0s", closest=False, **policy):
    """Return the reading of a route with settings of its retry policy."""
    return read(route(policy, timeout=timeout), closest=closest)


def policy_of(**policy):
    return reading_of(**policy).policy


def differences_of(**policy):
    return reading_of(closest=True, **policy).differences


def limits_of(schedule, count):
    """Return the upper bounds of some delays."""
    return [schedule.bounds(number)[1] for number in range(1, count + 1)]


YAML = """\
static_resources:
  listeners:
  - name: ingress
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          route_config:
            virtual_hosts:
            - name: backend
              domains: ["*"]
              retry_policy: {retry_on: "reset, refused-stream"}
              routes:
              - name: orders
                match: {prefix: /orders}
                route:
                  cluster: orders
                  timeout: 3s
                  retry_policy:
                    retry_on: 5xx,retriable-status-codes
                    retriable_status_codes: [429]
                    num_retries: 4
                    per_try_timeout: 0.5s
                    retry_back_off: {base_interval: 0.1s, max_interval: 0.5s}
                    host_selection_retry_max_attempts: 5
              - match: {path: /users}
                route: {cluster: users}
              - match: {safe_regex: {regex: /x}}
                route: {cluster: users}
              - match: {prefix: /old}
                redirect: {path_redirect: /new}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "envoy.yaml"
    path.write_text(YAML, "utf-8")
    return path


def test_a_route_is_read(file):
    reading = read(file, "orders")
    failed = HttpFailures([429, "5xx"], connections=True)
    assert reading.policy == Policy(
        schedule=reading.policy.schedule,
        max_attempts=5,
        max_elapsed=3.0,
        on=failed,
        on_result=HttpFailures([429, "5xx"]),
        attempt_timeout=0.5,
    )
    assert limits_of(reading.policy.schedule, 5) == [0.1, 0.2, 0.4, 0.5, 0.5]
    assert reading.differences == ()
    assert [each.rpartition(": ")[2] for each in reading.notes] == [
        "applies, not that of the virtual host"
    ]


def test_a_route_without_a_policy_has_that_of_its_virtual_host(file):
    assert names(file) == ["orders", "/users", "backend[2]"]
    reading = read(file, "backend[2]")
    assert reading.policy.max_attempts == 2
    assert reading.policy.on == HttpFailures(connections=True)
    assert reading.policy.on_result is None
    assert [each.partition(": ")[0] for each in reading.notes] == [
        f"{file}, line {line}" for line in (12, 29, 29)
    ]
    assert [each.rpartition(": ")[2] for each in reading.notes] == [
        "that of the virtual host applies, since the route has none",
        "15 s for all attempts together, by default",
        "also ends a running attempt; max_elapsed ends only the retries",
    ]


def test_an_empty_policy_of_a_route_retries_nothing():
    document = host(route({}), route(), retry_policy={"retry_on": "5xx"})
    assert names(document) == ["/a", "/a (2)"]
    reading = read(document, "/a")
    assert reading.policy == Policy(max_attempts=1)
    assert (
        "virtual_hosts[0].routes[0].route.retry_policy.retry_on: selects"
        in (reading.notes[-1])
    )


def test_defaults():
    policy = read(route({"retry_on": "5xx"})).policy
    assert (policy.max_attempts, policy.max_elapsed) == (2, 15.0)
    assert limits_of(policy.schedule, 5) == [0.025, 0.05, 0.1, 0.2, 0.25]
    assert policy.attempt_timeout is None
    assert policy.hint is None


def test_both_spellings_of_json_are_read():
    document = {
        "virtualHosts": [
            {
                "retryPolicy": {
                    "retryOn": "gateway-error",
                    "numRetries": "3",
                    "retryBackOff": {"baseInterval": "1s", "maxInterval": "1.5s"},
                },
                "routes": [{"route": {"cluster": "a", "timeout": "0s"}}],
            }
        ]
    }
    policy = read(document, "[0]").policy
    assert policy.max_attempts == 4
    assert policy.max_elapsed is None
    assert policy.on == HttpFailures([502, 503, 504], connections=True)
    assert limits_of(policy.schedule, 3) == [1.0, 1.5, 1.5]


def test_a_key_in_both_spellings_is_refused():
    with pytest.raises(
        ConfigError, match=r"^retry_on must be written once, got it as retryOn"
    ):
        policy_of(retryOn="5xx", retry_on="reset")


def next_intervals(base, longest):
    """Yield the intervals of JitteredExponentialBackOffStrategy, in milliseconds."""
    interval, doubling_limit = base, longest // 2
    while True:
        yield interval
        interval = interval * 2 if interval < doubling_limit else longest


@given(st.integers(1, 1000), st.integers(0, 20_000))
def test_delays_are_those_of_the_code(base, more):
    back_off = {"base_interval": f"{base / 1000}s"}
    longest = base * 10
    if more:
        longest = base + more
        back_off["max_interval"] = f"{longest / 1000:.3f}s"
    schedule = policy_of(retry_on="5xx", num_retries=20, retry_back_off=back_off)
    schedule = schedule.schedule
    # random() % interval is a whole number of milliseconds below the interval.
    intervals = [*islice(next_intervals(base, longest), 12)]
    limits = [round(1000 * each, 6) for each in limits_of(schedule, 12)]
    assert limits == intervals
    drawn = [schedule.delay(number, None, Highest()) for number in range(1, 13)]
    assert [round(1000 * each, 6) for each in drawn] == [x - 1 for x in intervals]


class Highest:
    """Draws the highest number below 1."""

    def random(self):
        return 1 - 1e-9


def test_a_delay_that_the_doubling_skips():
    back_off = {"base_interval": "0.010s", "max_interval": "0.041s"}
    schedule = policy_of(retry_on="5xx", retry_back_off=back_off).schedule
    assert limits_of(schedule, 4) == [0.01, 0.02, 0.041, 0.041]


def test_parts_of_milliseconds_are_left_out():
    back_off = {"base_interval": "0.0001s", "max_interval": "0.0035s"}
    policy = policy_of(
        retry_on="5xx", retry_back_off=back_off, per_try_timeout="0.0019s"
    )
    assert limits_of(policy.schedule, 3) == [0.001, 0.003, 0.003]
    assert policy.attempt_timeout == 0.001


@pytest.mark.parametrize(
    ("words", "on", "on_result"),
    [
        ("5xx", HttpFailures(["5xx"], connections=True), HttpFailures(["5xx"])),
        ("reset", HttpFailures(connections=True), None),
        ("reset,connect-failure", HttpFailures(connections=True), None),
        (
            "connect-failure,refused-stream",
            HttpFailures(unprocessed=True),
            None,
        ),
        ("retriable-4xx", HttpFailures([409]), HttpFailures([409])),
        ("cancelled,internal", StatusCodes(["CANCELLED", "INTERNAL"]), None),
        (
            "deadline-exceeded,resource-exhausted",
            StatusCodes(["DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"]),
            None,
        ),
    ],
)
def test_words_select_failures(words, on, on_result):
    policy = policy_of(retry_on=words)
    assert (policy.on, policy.on_result) == (on, on_result)


def test_failures_of_http_and_of_grpc_are_joined():
    policy = policy_of(retry_on="reset,unavailable")
    assert policy.on(ConnectionResetError())
    assert not policy.on(ValueError())
    scope = {}
    exec(to_python("policy", policy), scope)  # noqa: S102  our own text
    assert scope["policy"] == policy


def test_statuses_need_their_word():
    reading = reading_of(retry_on="reset", retriable_status_codes=[503])
    assert reading.policy.on == HttpFailures(connections=True)
    assert reading.notes == (
        (
            "route.retry_policy.retriable_status_codes: has no effect without"
            " retriable-status-codes in retry_on"
        ),
    )
    words = "retriable-status-codes"
    policy = policy_of(retry_on=words, retriable_status_codes=["503", 500])
    assert policy.on == policy.on_result == HttpFailures([503, 500])
    assert policy_of(retry_on=words).max_attempts == 1
    # Codes of gRPC, as they are found in files.
    reading = reading_of(retry_on=words, retriable_status_codes=[14, 503])
    assert reading.policy.on == HttpFailures([503])
    assert [each.rpartition(": ")[2] for each in reading.notes] == [
        "14 is not an HTTP status"
    ]


@pytest.mark.parametrize(
    ("words", "retried"), [("reset", True), ("connect-failure,refused-stream", False)]
)
def test_a_timeout_of_an_attempt_is_retried_as_a_reset(words, retried):
    policy = policy_of(retry_on=words, per_try_timeout="1s")
    assert policy.attempt_timeout == 1.0
    assert policy.give_up_on == (() if retried else AttemptTimeout)


def test_grpc_does_not_retry_a_timeout_of_an_attempt():
    policy = policy_of(retry_on="unavailable", per_try_timeout="1s")
    assert policy.give_up_on is AttemptTimeout


def test_a_timeout_of_an_attempt_beyond_that_of_all_has_no_effect():
    reading = reading_of("2s", retry_on="5xx", per_try_timeout="2s")
    assert reading.policy.attempt_timeout is None
    assert reading.notes == (
        (
            "route.retry_policy.per_try_timeout: has no effect, since all attempts"
            " together have 2 s"
        ),
        "route.timeout: also ends a running attempt; max_elapsed ends only the retries",
    )


def test_headers_say_how_long_to_wait():
    headers = [
        {"name": "Retry-After"},
        {"name": "X-RateLimit-Reset", "format": "UNIX_TIMESTAMP"},
        {"name": "Wait", "format": 0},
    ]
    back_off = {"reset_headers": headers, "max_interval": "60s"}
    reading = reading_of(
        closest=True, retry_on="5xx", rate_limited_retry_back_off=back_off
    )
    policy = reading.policy
    assert policy.hint == first_of(retry_after(), reset_at("x-ratelimit-reset"))
    assert (policy.hint_cap, policy.hint_jitter) == (60.0, 0.5)
    assert policy.on_long_hint == "ignore"
    place = f"route.retry_policy.{LIMITED}"
    assert reading.differences == (
        f"{place}.reset_headers[0].name: a date is obeyed, which Envoy ignores",
        (
            f"{place}.reset_headers[1].name: ignored while x-ratelimit-remaining is"
            " above 0"
        ),
        f"{place}.reset_headers[2].name: Wait is not read",
        (
            f"{place}: waits no shorter than retry_back_off says, nor longer than"
            " max_interval"
        ),
    )


def test_headers_that_are_not_read():
    back_off = {"reset_headers": [{"name": "Retry-After", "format": 1}]}
    reading = reading_of(
        closest=True, retry_on="5xx", rate_limited_retry_back_off=back_off
    )
    assert reading.policy.hint is None
    assert len(reading.differences) == 1
    back_off = {"reset_headers": [{"name": "Retry-After"}]}
    reading = reading_of(
        closest=True, retry_on="5xx", rate_limited_retry_back_off=back_off
    )
    assert reading.policy.hint_cap == 300.0


@pytest.mark.parametrize(
    ("fields", "difference"),
    [
        ({"retry_on": "5xx,envoy-ratelimited"}, "envoy-ratelimited: a response is not"),
        ({"retry_on": "5xx,retriable-headers"}, "retriable-headers: a response is not"),
        (
            {"retry_on": "reset-before-request"},
            "reset-before-request: a connection that is lost before",
        ),
        ({"retry_on": "refused-stream"}, "a connection that could not be made is"),
        (
            {"retry_on": "connect-failure"},
            "a stream that HTTP/2 refuses is also retried",
        ),
        (
            {
                "retry_on": "retriable-status-codes",
                "retriable_status_codes": [425],
            },
            "425: waits before the retry, which Envoy makes at once",
        ),
        (
            {"retry_on": "5xx", "per_try_idle_timeout": "1s"},
            "an attempt that receives nothing is not ended",
        ),
        (
            {"retry_on": "5xx", "retriable_request_headers": [{"name": "a"}]},
            "retries do not depend on headers of the request",
        ),
    ],
)
def test_what_a_policy_cannot_say_is_a_difference(fields, difference):
    [found] = differences_of(**fields)
    assert difference in found
    with pytest.raises(ConfigError, match="closest=True reads what can be expressed"):
        policy_of(**fields)


def test_hedging_and_extensions_are_differences():
    hedging = {"hedge_on_per_try_timeout": True}
    typed = {"name": "x"}
    policy = {"retry_on": "5xx"}
    action = route(policy, hedge_policy=hedging, retry_policy_typed_config=typed)
    reading = read(action, closest=True)
    assert [each.rpartition(": ")[2] for each in reading.differences] == [
        "an extension decides otherwise",
        "no request is sent beside one that is late",
    ]
    document = host(route(), retry_policy=policy, hedge_policy=hedging)
    assert len(read(document, closest=True).differences) == 1
    own = {"hedge_on_per_try_timeout": "false"}
    document = host(route(hedge_policy=own), retry_policy=policy, hedge_policy=hedging)
    assert read(document).differences == ()


def test_several_tables_for_one_are_refused():
    document = route({"retry_on": "5xx"}, hedge_policy=[{}, {}])
    with pytest.raises(ConfigError, match="hedge_policy must be one table"):
        read(document)


def test_a_number_may_be_written_as_in_json():
    assert policy_of(retry_on="5xx", num_retries=3.0).max_attempts == 4


def test_a_word_that_envoy_ignores_is_told():
    reading = reading_of(retry_on="gateway-errors, reset,,x")
    assert reading.policy.on == HttpFailures(connections=True)
    assert reading.notes == (
        (
            "route.retry_policy.retry_on: Envoy ignores 'gateway-errors'; did you mean"
            " gateway-error?"
        ),
        "route.retry_policy.retry_on: Envoy ignores 'x'",
    )


def test_what_has_no_effect_is_told():
    reading = reading_of(retry_on="http3-post-connect-failure,unavailable")
    assert [each.partition(": ")[2] for each in reading.notes] == [
        "http3-post-connect-failure has no effect without HTTP/3",
        "unavailable: Envoy reads it in the headers, not in trailers",
    ]
    assert reading_of(retry_on="").policy == Policy(max_attempts=1)
    reading = reading_of(retry_on="5xx,retriable-headers", num_retries=0)
    assert reading.policy == Policy(max_attempts=1)
    assert reading.notes == ()


BACK_OFF = "retry_back_off"
LIMITED = "rate_limited_retry_back_off"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_retries": -1}, "num_retries must be an integer >= 0"),
        ({"num_retrys": 1}, "no key 'num_retrys'; did you mean num_retries?"),
        ({"retry_on": 503}, "retry_on must be a string, got 503"),
        ({"per_try_timeout": "-1s"}, "per_try_timeout must be seconds such as"),
        ({"per_try_timeout": "1m"}, "per_try_timeout must be seconds such as"),
        ({"retriable_status_codes": [-1]}, "codes must be an integer >= 0 and <= 4294"),
        ({"retriable_status_codes": {}}, "codes must be an integer >= 0 and <= 4294"),
        ({BACK_OFF: {}}, "retry_back_off must be a table with base_interval"),
        (
            {BACK_OFF: {"base_interval": "0s"}},
            "base_interval must be a duration above 0, got '0s'",
        ),
        (
            {BACK_OFF: {"base_interval": "1s", "max_interval": "0.5s"}},
            "max_interval must be at least the base_interval of 1 s, got '0.5 s'",
        ),
        (
            {BACK_OFF: {"base_interval": "1s", "max": "2s"}},
            "no key 'max'; the keys are base_interval, max_interval",
        ),
        ({LIMITED: {}}, "must be a table with reset_headers"),
        ({LIMITED: {"reset_headers": []}}, "reset_headers must be a string, got []"),
        (
            {LIMITED: {"reset_headers": [{"name": "a", "format": "MS"}]}},
            "format must be one of SECONDS, UNIX_TIMESTAMP, got 'MS'",
        ),
        (
            {LIMITED: {"reset_headers": [{"name": "a", "format": True}]}},
            "format must be one of SECONDS, UNIX_TIMESTAMP, got True",
        ),
        ({LIMITED: {"reset_headers": [{"format": 1}]}}, "a table with name"),
        (
            {LIMITED: {"reset_headers": [{"name": "a"}], "max_interval": "0s"}},
            "max_interval must be a duration above 0",
        ),
    ],
)
def test_what_envoy_refuses_is_refused(fields, message):
    with pytest.raises(ConfigError) as info:
        policy_of(**{"retry_on": "5xx"} | fields)
    assert message in info.value.message


@pytest.mark.parametrize("syntax", ["yaml", "json"])
def test_an_error_has_the_file_and_the_line(tmp_path, file, syntax):
    if syntax == "json":
        file = tmp_path / "envoy.json"
        document = route({"retry_on": "5xx", "num_retries": "many"})
        file.write_text(json.dumps(document, indent=1), "utf-8")
        line = 9
    else:
        file.write_text(YAML.replace("retries: 4", "retries: many"), "utf-8")
        line = 22
    with pytest.raises(ConfigError) as info:
        read(file, names(file)[0])
    start = f"{file}, line {line}: num_retries must be an integer >= 0"
    assert info.value.message.startswith(start)


@pytest.mark.parametrize(
    "document",
    [
        {"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3}}]},
        {"retryPolicy": {"initialInterval": "1s", "maximumAttempts": 3}},
        {"retryPolicy": {"minimumBackoff": "1s"}},
        {"route": {"retryPolicy": {"maxAttempts": 3}}, "routes": 3},
        {"routes": [{"retryPolicy": {"retryOn": "5xx"}, "route": {}}]},
        {"route": [{"retry_policy": {"retry_on": "5xx"}}]},
        {"route": {"retry_policy": "5xx"}},
        {"retry_policy": {"retry_on": "5xx"}, "route": {}},
        {"retry_policy": {"retry_on": "5xx"}, "other": [{"route": {}}]},
        {"route": {"retry_policy": {3: "5xx"}}},
    ],
    ids=str,
)
def test_tables_of_other_systems_are_left_alone(document):
    assert names(document, format="envoy") == []


def test_a_patch_has_no_name_and_is_a_difference():
    value = {"route": {"retry_policy": {"retry_on": "5xx"}}}
    document = {"patch": {"operation": "MERGE", "value": value}}
    assert names(document) == [""]
    [difference] = read(document, closest=True).differences
    text = "a patch, whose other settings are those of the route"
    assert difference == f"patch.value.route: {text}"

"""Valid and invalid policies as data, for the loader and the JSON Schema."""

import math

from retrykit.schedules._randomness import MAX_DELAY

__all__ = ["INVALID", "LOADER_ONLY", "VALID"]


def of(text):
    return {"schedule": text}


def rule(**parts):
    return {"rules": [{"on": "OSError", **parts}]}


def budget(kind, **settings):
    return {"budget": {"kind": kind, **settings}}


def limit(kind="circuit_breaker", **settings):
    return {"admission": [{"kind": kind, **settings}]}


VALID = {
    "nothing": {},
    "a list": {"schedule": [0, 1.5, "500ms"]},
    "an empty list": {"schedule": [], "max_attempts": 1},
    "constant": of("constant(1)"),
    "linear": of("linear('1m')"),
    "linear, first": of("linear(step='1m', first=0)"),
    "linear, falling": of("linear(-0.5, first='1m')"),
    "exponential": of("exponential(1)"),
    "exponential, factor": of("exponential('100us', factor=1)"),
    "decay": of("decay('1m')"),
    "decay, rate": of("decay(first=1, rate=0)"),
    "polynomial": of("polynomial(exponent=0)"),
    "polynomial, first": of("polynomial(exponent=2.5, first='1h 30m')"),
    "fibonacci": of("fibonacci()"),
    "fibonacci, first": of("fibonacci(first=' 2s ')"),
    "uniform": of("uniform(0, '1m')"),
    "uniform, high": of("uniform(1, high=1)"),
    "decorrelated": of("decorrelated(0)"),
    "decorrelated, factor": of("decorrelated(first=1, factor=1.0)"),
    "google_interval": of("google_interval()"),
    "google_interval, all": of(
        "google_interval(initial_interval=0.001, randomization_factor=0, multiplier=1, "
        "max_interval='24d')"
    ),
    "polly_interval": of("polly_interval()"),
    "polly_interval, first": of("polly_interval(median_first_retry_delay='500ms')"),
    "sequence": of("sequence([1, '2s'])"),
    "sequence, repeat_last": of("sequence(delays=[1, '2s'], repeat_last=True)"),
    "then": of("sequence([1]).then([2])"),
    "switch": of("constant(1).switch(after=0, to=[2])"),
    "cap": of("fibonacci().cap('1m')"),
    "at_least": of("fibonacci().at_least(0)"),
    "round_down": of("sequence([1]).round_down('1s')"),
    "take": of("fibonacci().take(9)"),
    "within": of("fibonacci().within(9)"),
    "full_jitter": of("fibonacci().full_jitter()"),
    "equal_jitter": of("fibonacci().equal_jitter()"),
    "jitter": of("fibonacci().jitter(1)"),
    "sum": of("fibonacci() + [2]"),
    "union": of("fibonacci() | constant(1)"),
    "intersection": of("fibonacci() & [1]"),
    "scale": of("fibonacci() * 0"),
    "delays in a string": of("1s, 5s, 1m"),
    "a list in a string": of("[1, '5s']"),
    "several lines": of("constant(1)\n    .cap(9)\n"),
    "errors by name": {"on": ["name=Busy", "OSError"]},
    "failures of HTTP": {"on": ["http=5xx", "http=429", "http=connections"]},
    "failures of gRPC": {"on": "grpc=UNAVAILABLE", "give_up_on": "name=Odd"},
    "all but some": {"on": ["not=OSError"]},
    "rejected results": {"on": [], "on_result": "http=503"},
    "many rejected results": {"on_result": ["http=5xx", "http=unprocessed"]},
    "results or none": {"on_result": None},
    "a rule of results": {
        "rules": [{"on": [], "on_result": "http=503", "max_attempts": 2}]
    },
    "a rule of errors and results": rule(on_result=["http=503"], max_attempts=2),
    "one attempt": {"max_attempts": 1},
    "attempts unlimited": {"max_attempts": "unlimited"},
    "attempts null": {"max_attempts": None},
    "no time": {"max_attempts": 1, "max_elapsed": 0},
    "a text of time": {"max_elapsed": "1w2d3h4m5.5s6ms7us"},
    "the longest time": {"max_elapsed": MAX_DELAY},
    "time unlimited": {"max_elapsed": "unlimited"},
    "time null": {"max_elapsed": None},
    "the first limit": {"limits": "any"},
    "the last of the default limits": {"limits": "all"},
    "the last limit": {"limits": "all", "max_attempts": 9, "max_elapsed": "1h"},
    "clip": {"deadline": "clip"},
    "overshoot": {"deadline": "overshoot", "max_elapsed": "1m"},
    "stop without time": {"deadline": "stop", "max_elapsed": None},
    "one error": {"on": "OSError"},
    "an error of a module": {"on": "json:JSONDecodeError"},
    "an error by a path": {"on": "json:decoder.JSONDecodeError"},
    "errors": {"on": ["OSError", "json:JSONDecodeError"]},
    "no errors but those of a rule": {"on": [], **rule(schedule=[1])},
    "a group of such errors": {"exception_groups": "all"},
    "a group with such an error": {"exception_groups": "any"},
    "a group as it is": {"exception_groups": "whole"},
    "giving up": {"give_up_on": "KeyError"},
    "never giving up": {"give_up_on": []},
    "retry_error": {"raises": "retry_error"},
    "group": {"raises": "group"},
    "whole texts": {"redact": False},
    "whole errors": {"keep_tracebacks": True},
    "two failures": {"max_failures": 2},
    "a seed": {"seed": 0},
    "the longest seed": {"seed": 2**53 - 1},
    "no seed": {"seed": None},
    "a name": {"name": "fetch a page"},
    "no name": {"name": None},
    "no rules": {"rules": []},
    "a rule of its own delays": rule(schedule=["1s", 2]),
    "a rule of an expression": rule(schedule="1s, 5s"),
    "a rule of few attempts": rule(max_attempts=1),
    "a rule of both": rule(schedule="fibonacci()", max_attempts="unlimited"),
    "a rule of a hint": rule(hint="retry_after"),
    "a rule of everything": rule(schedule=[1], max_attempts=2, hint="attribute:wait"),
    "a rule without a hint": rule(max_attempts=2, hint=None),
    "two rules": {
        "rules": [
            {"on": ["KeyError", "json:JSONDecodeError"], "max_attempts": 2},
            {"on": "Exception", "schedule": [], "max_attempts": None},
        ]
    },
    "a hint": {"hint": "retry_after"},
    "no hint": {"hint": None},
    "several hints": {
        "hint": " milliseconds:Retry-After-Ms,retry_after ,\n grpc_pushback "
    },
    "a hint of an attribute": {"hint": "attribute:response.wait"},
    "a hint in milliseconds": {"hint": "attribute:wait:ms, attribute:wait:s"},
    "a hint of a date": {"hint": "reset_at, reset_at:x-ratelimit-reset"},
    "a hint of a quota": {"hint": "retry_after, rate_limit"},
    "a longest hint": {"hint_cap": "5m"},
    "no longest hint": {"hint_cap": "unlimited", "on_long_hint": "honor"},
    "the default of hints": {
        "hint_cap": 3600,
        "on_long_hint": "give_up",
        "hint_jitter": 0.1,
    },
    "no spread of hints": {"on_long_hint": "ignore", "hint_jitter": 0},
    "no budget": {"budget": None},
    "no hedge": {"hedge": None},
    "a hedge": {"hedge": {"delay": "50ms", "idempotent": True}},
    "a hedge for a client": {"hedge": {"delay": 1}},
    "a hedge without a promise": {"hedge": {"delay": 1, "idempotent": False}},
    "a hedge at a quantile": {
        "hedge": {"quantile": 0.95, "at_most": 3, "extra": 2, "idempotent": True}
    },
    "no limits": {"admission": [], "on_refused": "give_up"},
    "a breaker": limit() | {"on_refused": "wait"},
    "a breaker of a host": limit(scope="host:a", on=["OSError"], window=50),
    "a rate": limit("rate", calls=5, per="1m", spread=True),
    "an adaptive rate": limit("adaptive_rate", on=["OSError"], max_wait="5s"),
    "an adaptive limit": limit("concurrency", at_most={"kind": "vegas"}),
    "a breaker that opens for longer": limit(
        open_for="exponential('5s').cap('5m')", consecutive_failures=3, successes=0.5
    ),
    "a bulkhead": limit("concurrency", at_most=5),
    "a bulkhead with a queue": limit(
        "concurrency", at_most=5, queue=9, max_wait="2s", order="lifo", name="db"
    ),
    "a bucket": budget("token_bucket"),
    "a bucket with costs": budget(
        "token_bucket",
        capacity=0,
        cost=14,
        costs={"TimeoutError": 5, "json:JSONDecodeError": 0},
        reward=2,
    ),
    "a throttle": budget("throttle", max_tokens=1, token_ratio=0.001),
    "a ratio": budget("ratio_budget", ratio=0, reserve=1_000_000, window="1m"),
    "a bucket without refunds": budget("token_bucket", refunds=False),
    "a fleet": budget("fleet_budget", ratio=0.1, capacity=0, recent="2s"),
    "a fleet with a timeout": budget("fleet_budget", timeouts="json:JSONDecodeError"),
    "a fleet with timeouts": budget(
        "fleet_budget", timeouts=["TimeoutError", "json:JSONDecodeError"]
    ),
    "a fleet without timeouts": budget("fleet_budget", timeouts=[]),
    "a budget of the process": budget("ratio_budget", scope="process"),
    "a budget of a host": budget("throttle", scope="host:data.example"),
    "a budget of a key": budget("throttle", scope="key: \n of several lines"),
    "an attempt timeout": {"attempt_timeout": "1.5s"},
    "no attempt timeout": {"attempt_timeout": None},
    "attempts of any length": {"attempt_timeout": "unlimited"},
    "a timeout passed as an argument": {
        "attempt_timeout": {"argument": "timeout", "seconds": "500ms"}
    },
    "respecting the inside": {"nested": "respect"},
    "retrying the inside": {"nested": "retry"},
}

INVALID = {
    **{f"{value!r} for a policy": value for value in (None, True, 1, "x", [], [{}])},
    "an unknown setting": {"max_retries": 3},
    "results of no status": {"on_result": ["http=600"]},
    "results of a type": {"on_result": "OSError"},
    "no results": {"on_result": []},
    "a kind of failure": {"on": "https=503"},
    "a class of statuses": {"on": ["http=6xx"]},
    "a name of nothing": {"on": "name="},
    "no errors and no results": {"on": [], "on_result": None},
    "observers": {"observers": []},
    "a fallback": {"fallback": None},
    "an event": {"stop_event": None},
    "a way to sleep": {"sleep": None},
    "extends, alone": {"extends": "base"},
    **{
        f"{value!r} for {name}": {name: value}
        for name, values in {
            "schedule": [None, True, 5, {}, [[1]], ["soon"], [-1], [True], [None]],
            "max_attempts": [0, -1, 1.5, True, "3", "no", [], {}],
            "max_elapsed": [-1, True, "5", "soon", "-5s", "5 S", "", [], 10**309],
            "limits": ["", "both", None, True, []],
            "deadline": ["Stop", "", None, 1, True],
            "on": [
                "",
                ":OSError",
                "OSError.",
                "a:",
                None,
                1,
                [],
                [1],
                {},
                [["OSError"]],
            ],
            "give_up_on": ["", None, True, [""]],
            "exception_groups": ["", "none", None, True],
            "raises": ["first", None, 0],
            "redact": [None, 0, 1, "true", []],
            "keep_tracebacks": [None, 0, 1, "true", []],
            "max_failures": [1, 0, 2.5, None, True, "9", "unlimited"],
            "seed": [-1, 0.5, "1", True, []],
            "name": ["", " ", 1, True, []],
            "rules": [None, {}, "", ["OSError"], [[]], [None], [{}]],
            "hint": [
                "",
                ",",
                "retry_after,",
                "retry-after",
                "retry_after:5",
                "milliseconds",
                "milliseconds:",
                "milliseconds:a b",
                "milliseconds: a",
                "attribute:",
                "attribute:a.",
                "attribute:a:h",
                "attribute:a:ms:ms",
                "reset_at:",
                5,
                True,
                [],
            ],
            "hint_cap": [-1, True, "soon", "", []],
            "on_long_hint": ["", "stop", None, 60],
            "hint_jitter": [-0.1, 1.1, True, None, "10%", []],
            "budget": [
                True,
                5,
                "",
                "throttle",
                [],
                {},
                {"kind": None},
                {"kind": "bucket"},
            ],
            "admission": [
                None,
                {},
                "breaker",
                [5],
                [{}],
                [{"kind": "budget"}],
                [{"kind": "circuit_breaker", "probes": 0}],
                [{"kind": "circuit_breaker", "probe": 1}],
                [{"kind": "circuit_breaker", "failure_rate": 2}],
                [{"kind": "circuit_breaker", "window": True}],
                [{"kind": "circuit_breaker", "open_for": {}}],
                [{"kind": "circuit_breaker", "name": ""}],
                [{"kind": "rate"}],
                [{"kind": "rate", "calls": 0}],
                [{"kind": "rate", "calls": 5, "per": 0}],
                [{"kind": "rate", "calls": 5, "max_wait": None}],
                [{"kind": "adaptive_rate", "max_wait": -1}],
                [{"kind": "concurrency", "at_most": {"kind": "netflix"}}],
                [{"kind": "concurrency"}],
                [{"kind": "concurrency", "at_most": 0}],
                [{"kind": "concurrency", "at_most": "5"}],
                [{"kind": "concurrency", "at_most": 5, "queue": -1}],
                [{"kind": "concurrency", "at_most": 5, "queue": 1, "max_wait": 0}],
                [{"kind": "concurrency", "at_most": 5, "queue": 1, "order": "new"}],
                [{"kind": "concurrency", "at_most": 5, "waiting": 1}],
            ],
            "hedge": [
                5,
                [],
                {},
                {"idempotent": True},
                {"delay": 1, "quantile": 0.5, "idempotent": True},
                {"delay": -1, "idempotent": True},
                {"quantile": 1, "idempotent": True},
                {"quantile": 0, "idempotent": True},
                {"delay": 1, "idempotent": 1},
                {"delay": 1, "idempotent": True, "at_most": 1},
                {"delay": 1, "idempotent": True, "extra": 0},
                {"delay": 1, "idempotent": True, "most": 2},
            ],
            "on_refused": ["", "raise", None, 5],
            "attempt_timeout": [
                0,
                -1,
                True,
                "soon",
                [],
                {},
                {"argument": "timeout"},
                {"seconds": 5},
                {"argument": "timeout", "seconds": 0},
                {"argument": "", "seconds": 5},
                {"argument": "5s", "seconds": 5},
                {"argument": None, "seconds": 5},
                {"argument": "timeout", "seconds": "5s", "unit": "s"},
            ],
            "nested": ["", "ignore", None, False],
        }.items()
        for value in values
    },
    **{
        f"{name} without {limit!r}": {"deadline": name, "max_elapsed": limit}
        for name in ("clip", "overshoot")
        for limit in (None, "unlimited")
    },
    **{
        f"{name} without max_elapsed, beside {other}": {"deadline": name, other: value}
        for name in ("clip", "overshoot")
        for other, value in (("max_attempts", 3), ("schedule", [1]))
    },
    **{
        f"all limits, of {limits}": {"limits": "all"} | limits
        for limits in (
            {"max_attempts": None},
            {"max_attempts": "unlimited", "max_elapsed": 60},
            {"max_attempts": 5, "max_elapsed": None},
            {"max_attempts": 5},
            {"max_elapsed": 60},
            {"schedule": [1]},
        )
    },
    "no errors and no rules": {"on": [], "rules": []},
    "a rule that says nothing": rule(),
    "a rule without a hint or anything else": rule(hint=None),
    "a rule of no results": rule(max_attempts=2, on_result=[]),
    "a rule of an invalid hint": rule(hint="retry-after"),
    "a rule without limit or delays": rule(max_attempts=None),
    "a rule of nothing": {"rules": [{"max_attempts": 2}]},
    "a rule on nothing": {"rules": [{"on": [], "max_attempts": 2}]},
    "a rule of no attempt": rule(max_attempts=0),
    "a rule of no schedule": rule(schedule=None),
    "a rule with a limit of its own": rule(schedule=[1], max_elapsed=5),
    "a rule in a rule": rule(schedule=[1], rules=[]),
    "a bucket with less than nothing": budget("token_bucket", capacity=-1),
    "a bucket with parts of a token": budget("token_bucket", cost=0.5),
    "a bucket that costs a list": budget("token_bucket", costs=[["OSError", 1]]),
    "a bucket that costs a part": budget("token_bucket", costs={"OSError": 1.5}),
    "a bucket that costs nobody": budget("token_bucket", costs={"": 1}),
    "a setting of another budget": budget("token_bucket", ratio=0.5),
    "a throttle without tokens": budget("throttle", max_tokens=0),
    "a throttle that never fills": budget("throttle", token_ratio=0.0009),
    "more than a ratio": budget("ratio_budget", ratio=1001),
    "a ratio in no time": budget("ratio_budget", window=0.9),
    "a bucket that may refund": budget("token_bucket", refunds=1),
    "a fleet of parts": budget("fleet_budget", capacity=0.5),
    "a fleet with less than nothing": budget("fleet_budget", ratio=-0.1),
    "a fleet without an end": budget("fleet_budget", recent="unlimited"),
    "a fleet with a number": budget("fleet_budget", timeouts=5),
    "a fleet with nothing": budget("fleet_budget", timeouts=[""]),
    "an unlimited ratio": budget("ratio_budget", window="unlimited"),
    "a scope that is none": budget("throttle", scope="data.example"),
    "a scope of nothing": budget("throttle", scope="host: "),
    "a scope of more than the process": budget("throttle", scope="process\n"),
    "a scope that is null": budget("throttle", scope=None),
    "an infinite time": {"max_elapsed": math.inf},
    "too many digits": {"max_elapsed": "1" * 16 + "s"},
    "a space that is not ASCII": {"max_elapsed": "\xa05s"},
    "a dict of a kind": of({"kind": "constant", "wait": 1}),
    "an empty string": of(""),
    "spaces": of(" \n"),
    "a list of a schedule": of(["constant(1)"]),
}

# What the schema says that it cannot say.
LOADER_ONLY = {
    "an integer has no decimal point": (
        r"must be an integer >= \d, got [0-9.e+]+",
        {"max_attempts": 2.0},
    ),
    "no number is nan": ("got nan", of([math.nan])),
    "a text keeps the bounds of numbers": (
        "unit must be a duration > 0, got '0s'",
        of("constant(1).round_down('0s')"),
    ),
    "the longest interval is no shorter than the first": (
        "max_interval must be a finite number >=",
        of("google_interval(initial_interval=2, max_interval=1)"),
    ),
    "the longest delay is no shorter than the shortest": (
        "high must be a finite number >= 2",
        of("uniform(2, 1)"),
    ),
    "what another follows must end": (
        "schedule must be finite",
        of("fibonacci().then([1])"),
    ),
    "a schedule is an expression": (
        "schedule must be made of constructors",
        of("wait(5)"),
    ),
    "a schedule is complete": (
        "schedule must be made with cap",
        of("constant(1).cap()"),
    ),
    "a schedule has an end": ("schedule must be an expression", of("constant(1")),
    "an error is known": (
        "must be the name of an exception type",
        {"on": "ConectionError"},
    ),
    "an error may be retried": ("must be an Exception type", {"on": "SystemExit"}),
    "giving up leaves something": (
        "must be narrower than on",
        {"on": "OSError", "give_up_on": "Exception"},
    ),
    "the time is enough for a retry": (
        "max_elapsed must be at least 250ms, the first delay",
        {"max_elapsed": 0},
    ),
    "the schedule is enough for a retry": (
        "schedule must be at least one delay",
        {"max_attempts": 3, "schedule": []},
    ),
    "giving up leaves something of a rule": (
        "must be narrower than the on of each rule",
        rule(max_attempts=2) | {"give_up_on": "OSError"},
    ),
    "each rule can hold": (
        "must be placed where it can apply",
        {"rules": 2 * [{"on": "OSError", "max_attempts": 2}]},
    ),
    "the first delay is in time": (
        "max_elapsed must be at least .*, the first delay",
        {"max_elapsed": 0},
    ),
    "the schedule allows the attempts": (
        "max_attempts must be at most .*, since the schedule",
        {"schedule": [1], "max_attempts": 3, "max_elapsed": 9, "limits": "all"},
    ),
    "an attribute has a name": (
        "path must be the name of an attribute",
        {"hint": "attribute:5"},
    ),
    "a parameter has a name": (
        "attempt_timeout: name must be the name of a parameter",
        {"attempt_timeout": {"argument": "time-out", "seconds": 5}},
    ),
    "an attempt is not ended at once": (
        "must be a duration > 0, got '0s'",
        {"attempt_timeout": "0s"},
    ),
    "a window has bounds": (
        "window must be a duration from 1s to 1d",
        budget("ratio_budget", window="2d"),
    ),
    "a scope has one budget": (
        "as before in this scope",
        budget("throttle", max_tokens=7, scope="host:data.example"),
    ),
}

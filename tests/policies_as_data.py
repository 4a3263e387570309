"""Policies as data, right and wrong ones, for those who read such data."""

import math

from retrykit.jitter import LONGEST

__all__ = ["INVALID", "LOADER_ONLY", "VALID"]


def of(kind, **parts):
    return {"schedule": {"kind": kind, **parts}}


VALID = {
    "nothing": {},
    "a list": {"schedule": [0, 1.5, "500ms"]},
    "an empty list": {"schedule": []},
    "constant": of("constant", wait=1),
    "linear": of("linear", step="1m"),
    "exponential": of("exponential", first=1),
    "exponential, factor": of("exponential", first="100us", factor=1),
    "polynomial": of("polynomial", exponent=0),
    "polynomial, first": of("polynomial", exponent=2.5, first="1h 30m"),
    "fibonacci": of("fibonacci"),
    "fibonacci, first": of("fibonacci", first=" 2s\n"),
    "decorrelated": of("decorrelated", first=0),
    "decorrelated, factor": of("decorrelated", first=1, factor=1.0),
    "google_interval": of("google_interval"),
    "google_interval, all": of(
        "google_interval",
        initial_interval=0.001,
        randomization_factor=0,
        multiplier=1,
        max_interval="24d",
    ),
    "polly_interval": of("polly_interval"),
    "polly_interval, first": of("polly_interval", median_first_retry_delay="500ms"),
    "sequence": of("sequence", delays=[1, "2s"]),
    "then": of("then", of=[1], other=[2]),
    "switch": of("switch", of=[1], after=0, to=[2]),
    "cap": of("cap", of=[1], limit="1m"),
    "at_least": of("at_least", of={"kind": "fibonacci"}, limit=0),
    "round_down": of("round_down", of=[1], unit="1s"),
    "take": of("take", of=[1], retries=0),
    "within": of("within", of=[1], total=0),
    "full_jitter": of("full_jitter", of=[1]),
    "equal_jitter": of("equal_jitter", of=[1]),
    "jitter": of("jitter", of=[1], factor=1),
    "plus": of("plus", left=[1], right=[2]),
    "either": of("either", left=[1], right={"kind": "constant", "wait": 1}),
    "both": of("both", left=[1], right=[]),
    "times": of("times", of=[1], factor=0),
    "one attempt": {"max_attempts": 1},
    "attempts unlimited": {"max_attempts": "unlimited"},
    "attempts null": {"max_attempts": None},
    "no time": {"max_elapsed": 0},
    "a text of time": {"max_elapsed": "1w2d3h4m5.5s6ms7us"},
    "the longest time": {"max_elapsed": LONGEST},
    "time unlimited": {"max_elapsed": "unlimited"},
    "time null": {"max_elapsed": None},
    "clip": {"deadline": "clip"},
    "overshoot": {"deadline": "overshoot", "max_elapsed": "1m"},
    "stop without time": {"deadline": "stop", "max_elapsed": None},
    "one error": {"on": "OSError"},
    "an error of a module": {"on": "json:JSONDecodeError"},
    "an error by a path": {"on": "json:decoder.JSONDecodeError"},
    "errors": {"on": ["OSError", "json:JSONDecodeError"]},
    "giving up": {"give_up_on": "KeyError"},
    "never giving up": {"give_up_on": []},
    "retry_error": {"raises": "retry_error"},
    "group": {"raises": "group"},
    "two failures": {"max_failures": 2},
    "a seed": {"seed": 0},
    "a long seed": {"seed": 2**64},
    "no seed": {"seed": None},
    "a name": {"name": "fetch a page"},
    "no name": {"name": None},
}

INVALID = {
    **{f"{value!r} for a policy": value for value in (None, True, 1, "x", [], [{}])},
    "an unknown setting": {"max_retries": 3},
    "a setting of code": {"on_result": None},
    "observers": {"observers": []},
    "extends, alone": {"extends": "base"},
    **{
        f"{value!r} for {name}": {name: value}
        for name, values in {
            "schedule": [None, True, 5, {}, [[1]], ["soon"], [-1], [True], [None]],
            "max_attempts": [0, -1, 1.5, True, "3", "no", [], {}],
            "max_elapsed": [-1, True, "5", "soon", "-5s", "5 s", "", [], 10**309],
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
            "raises": ["first", None, 0],
            "max_failures": [1, 0, 2.5, None, True, "9", "unlimited"],
            "seed": [-1, 0.5, "1", True, []],
            "name": ["", " ", 1, True, []],
        }.items()
        for value in values
    },
    **{
        f"{name} without {limit!r}": {"deadline": name, "max_elapsed": limit}
        for name in ("clip", "overshoot")
        for limit in (None, "unlimited")
    },
    "an infinite time": {"max_elapsed": math.inf},
    "too many digits": {"max_elapsed": "1" * 16 + "s"},
    "a space that is not ASCII": {"max_elapsed": "\xa05s"},
    "an unknown kind": of("constantly", wait=1),
    "no kind": {"schedule": {"wait": 1}},
    "a kind that is no text": of(["constant"], wait=1),
    "a missing part": of("constant"),
    "a missing schedule": of("cap", limit=1),
    "an unknown part": of("constant", wait=1, factor=2),
    "another part's name": of("linear", wait=1),
    "a wrong wait": of("constant", wait=None),
    "a factor below 1": of("exponential", first=1, factor=0.99),
    "a factor that is a text": of("exponential", first=1, factor="2"),
    "a factor that is true": of("decorrelated", first=1, factor=True),
    "a negative exponent": of("polynomial", exponent=-0.5),
    "delays that are a text": of("sequence", delays="1s"),
    "delays that are a dict": of("sequence", delays={}),
    "no delays": of("sequence"),
    "google, too short": of("google_interval", initial_interval=0.0009),
    "google, all chance": of("google_interval", randomization_factor=1),
    "google, shrinking": of("google_interval", multiplier=0.5),
    "google, too long": of("google_interval", max_interval=2_147_483.648),
    "polly, less than nothing": of("polly_interval", median_first_retry_delay=-1),
    "a part of a part": of("cap", of={"kind": "constant"}, limit=1),
    "a negative limit": of("at_least", of=[1], limit=-1),
    "no unit": of("round_down", of=[1], unit=0),
    "a part of a retry": of("take", of=[1], retries=1.5),
    "after nothing": of("switch", of=[1], after=None, to=[2]),
    "too much jitter": of("jitter", of=[1], factor=1.01),
    "jitter of nothing": of("full_jitter"),
    "one operand": of("plus", left=[1]),
    "a wrong operand": of("both", left=[1], right=7),
    "times less than nothing": of("times", of=[1], factor=-1),
}

# What the schema says that it cannot say.
LOADER_ONLY = {
    "a whole number has no decimal point": (
        r"must be a whole number >= \d, got [0-9.e+]+",
        {"max_attempts": 2.0},
    ),
    "no number is nan": ("got nan", of("times", of=[1], factor=math.nan)),
    "a text keeps the bounds of numbers": (
        "unit must be a duration > 0, got '0s'",
        of("round_down", of=[1], unit="0s"),
    ),
    "and so does another": (
        "initial_interval must be a finite number >= 0.001",
        of("google_interval", initial_interval="1us"),
    ),
    "the longest interval is no shorter than the first": (
        "max_interval must be a finite number >=",
        of("google_interval", initial_interval=2, max_interval=1),
    ),
    "what another follows must end": (
        "schedule must be a schedule that ends",
        of("then", of={"kind": "fibonacci"}, other=[1]),
    ),
    "an error is known": (
        "must be the name of an exception type",
        {"on": "ConectionError"},
    ),
    "an error may be retried": ("must be an Exception type", {"on": "SystemExit"}),
    "giving up leaves something": (
        "must be narrower than on",
        {"give_up_on": "Exception"},
    ),
}

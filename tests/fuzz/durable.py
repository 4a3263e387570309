"""Targets: stored envelopes and payloads of durable jobs."""

import json

from retrykit import ConfigError, Policy, schedules
from retrykit.durable import Envelope, Job
from retrykit.durable._json_payloads import as_json, from_json
from tests.fuzz import values
from tests.fuzz.states import NEW, STORED, state_data
from tests.fuzz.target import Target
from tests.fuzz.values import altered, anything, maybe, mutated, nested, number, text

__all__ = ["TARGETS"]

_DEAD = {"stop_reason": "attempts", "next_delay": None}
_ENVELOPES = (
    STORED,
    STORED | {"counts": {}, "state": STORED["state"] | NEW},
    STORED | {"due": None, "state": STORED["state"] | _DEAD},
)


def _refuse():
    raise ConnectionError("refused")


_POLICY = Policy(schedule=schedules.linear("1h").full_jitter(), max_attempts=None)
_JOB = Job(_refuse, _POLICY, STORED["policy"])


def _envelope(random):
    data = random.choice(_ENVELOPES)
    if maybe(random, 0.2):
        data = data | {random.choice(["written", "due", "run"]): number(random)}
    if maybe(random, 0.1):
        data = data | {"state": state_data(random)}
    if maybe(random, 0.2):
        own = data["state"]
        names = ["epoch", "attempt", "slept", "next_delay", "spent", "dropped", "seed"]
        if isinstance(own, dict):
            data = data | {"state": own | {random.choice(names): number(random)}}
    for _ in range(random.choice([0, 1, 1, 2])):
        data = altered(random, data)
    if maybe(random, 0.2):
        string = values.as_json(data)
        data = mutated(random, string) if maybe(random, 0.5) else string
        data = data.encode("utf-8", "surrogatepass") if maybe(random, 0.5) else data
    return data


def _check_envelope(envelope, random):
    assert envelope.status in {"waiting", "succeeded", "dead"}
    assert envelope.key.startswith(envelope.job)
    assert envelope.describe()
    now = random.choice([0.0, 1.8e9, 4e9])
    assert (
        envelope.rescheduled(now).time_left(now)
        <= max(envelope.time_left(now), 0.0) + 1.0
    )
    written = json.dumps(envelope.to_dict(), allow_nan=False)
    assert Envelope.from_dict(written).to_dict() == envelope.to_dict()
    if envelope.status == "waiting" and envelope.policy == _JOB.name:
        made = _JOB.attempt(envelope, (), {})
        assert Envelope.from_dict(made.envelope.to_dict()) == made.envelope


def _payload(random):
    """Return arguments of a job, or the JSON that was stored of them."""
    kind = random.random()
    if kind < 0.05:
        return nested(random, 3000)
    if kind < 0.4:
        given = {text(random): anything(random) for _ in range(random.randint(0, 3))}
        return given if maybe(random, 0.5) else [*given.items()]
    if kind < 0.5:
        odd = [b"x", {1: 2}, {None: 1}, {1, 2}, object, 1j, ..., {(1,): 1}, {True: 0}]
        return {"a": [random.choice(odd)]}
    string = values.as_json(anything(random))
    string = mutated(random, string) if maybe(random, 0.7) else string
    return string.encode("utf-8", "surrogatepass") if maybe(random, 0.3) else string


def _read_payload(given):
    """Return data, and a copy that was written and read."""
    if not isinstance(given, str | bytes):
        return given, from_json("args", as_json("args", given))
    data = from_json("args", given)
    try:
        return data, from_json("args", as_json("args", data))
    except ConfigError:
        # JSON can have lone surrogates and null characters, which are not stored.
        return data, data


def _check_payload(pair, _random):
    data, again = pair
    assert values.as_json(data) == values.as_json(again), "it reads as another"


TARGETS = (
    Target("envelopes", 60, _envelope, Envelope.from_dict, _check_envelope),
    Target("payloads", 60, _payload, _read_payload, _check_payload),
)

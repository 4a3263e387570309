"""Simulations of many kinds, whose results must never change by a digit."""

from retrykit import Policy, Rule
from retrykit.budgets import RatioBudget, Throttle, TokenBucket
from retrykit.hints import retry_after
from retrykit.schedules import (
    constant,
    decorrelated,
    exponential,
    google_interval,
    polly_interval,
    sequence,
    uniform,
)
from retrykit.simulate import Clients, Outage, Server, Users
from retrykit.simulate._calls import check_policy
from retrykit.simulate._failures import errors_of
from retrykit.simulate._load import parse_load
from retrykit.simulate._scene import Scene

__all__ = ["CELLS", "scene_of"]

THREE = Policy(schedule=[0, 0, 0])
JITTERED = Policy(schedule=exponential(0.2).cap(5).full_jitter(), max_attempts=4)
RATIO = JITTERED.replace(budget=RatioBudget(reserve=10))
SHORT = {"horizon": "12s", "outage": Outage("3s", begin=2)}


def failing(kind, **settings):
    return SHORT | {"outage": Outage("3s", kind, begin=2, **settings)}


CELLS = {
    "once": (Policy(max_attempts=1), SHORT),
    "immediate": (THREE, SHORT),
    "immediate, high load": (THREE, SHORT | {"load": "95%"}),
    "jittered": (JITTERED, SHORT),
    "default": (Policy(), SHORT | {"load": "20%"}),
    "seed": (Policy(seed=5), SHORT),
    "no outage": (Policy(), SHORT | {"outage": None}),
    "max_elapsed": (Policy(schedule=constant(0.4), max_elapsed=3), SHORT),
    "clip": (Policy(schedule=constant(0.4), max_elapsed=3, deadline="clip"), SHORT),
    "attempt timeout": (
        Policy(attempt_timeout=0.3, max_elapsed=1.1, schedule=constant(0.2)),
        SHORT,
    ),
    "decorrelated": (Policy(schedule=decorrelated(0.1).cap(2)), SHORT),
    "rules": (
        Policy(rules=[Rule(on=TimeoutError, max_attempts=2)], schedule=[0.1, 0.2]),
        SHORT,
    ),
    "refuse": (JITTERED, failing("refuse")),
    "refuse, immediate": (THREE, failing("refuse")),
    "error": (JITTERED, failing("error")),
    "error, immediate": (THREE, failing("error")),
    "retry after": (
        Policy(hint=retry_after(), max_attempts=4),
        failing("error", retry_after=1),
    ),
    "partial hang": (JITTERED, failing("hang", share=0.3)),
    "partial error": (THREE, failing("error", share=0.7)),
    "partial refuse": (THREE, failing("refuse", share=0.4, slow_start=3)),
    "slow start": (JITTERED, failing("hang", slow_start=4)),
    "exponential": (JITTERED, SHORT | {"server": Server(service="exponential")}),
    "slots": (JITTERED, SHORT | {"server": Server(slots=7)}),
    "slots, exponential": (
        THREE,
        SHORT | {"server": Server(slots=3, service="exponential")},
    ),
    "queue bound": (THREE, SHORT | {"server": Server(queue_bound="500ms")}),
    "queue bound, jittered": (
        JITTERED,
        SHORT | {"server": Server(slots=2, queue_bound="900ms")},
    ),
    "newest first": (THREE, SHORT | {"server": Server(order="newest_first")}),
    "drops abandoned": (JITTERED, SHORT | {"server": Server(drops="abandoned")}),
    "drops late": (JITTERED, SHORT | {"server": Server(drops="late")}),
    "late answers": (THREE, SHORT | {"late_answers": True}),
    "users": (JITTERED, SHORT | {"load": Users(100, think="2s")}),
    "recorded": (JITTERED, SHORT | {"load": [0.05 * i for i in range(250)]}),
    "recorded, ties": (
        Policy(schedule=[0, 1, 0.01]),
        SHORT | {"load": [0.02 * (i // 2 * 2) for i in range(500)]},
    ),
    "far": (THREE, SHORT | {"network": 0.2}),
    "too far": (THREE, SHORT | {"network": 1.5}),
    "ratio, one process": (Clients(RATIO, processes=1), SHORT),
    "ratio, many processes": (RATIO, SHORT),
    "bucket": (Clients(THREE.replace(budget=TokenBucket()), processes=3), SHORT),
    "throttle": (Clients(JITTERED.replace(budget=Throttle()), processes=5), SHORT),
    "throttle, error": (
        Clients(THREE.replace(budget=Throttle()), processes=2),
        failing("error", share=0.5),
    ),
    "sum": (Policy(schedule=constant(0.3) + uniform(0, 0.5), max_attempts=6), SHORT),
    "rounded": (
        Policy(schedule=exponential(0.2).equal_jitter().round_down(0.001)),
        SHORT,
    ),
    "rounded, error": (
        Policy(schedule=exponential(0.2).equal_jitter().round_down(0.001)),
        failing("error"),
    ),
    "union": (
        Policy(
            schedule=(exponential(0.5) + constant(0.1)).full_jitter().round_down(0.1)
            | exponential(0.5),
            max_attempts=5,
        ),
        SHORT,
    ),
    "google": (Policy(schedule=google_interval(), max_elapsed="8s"), SHORT),
    "polly": (Policy(schedule=polly_interval(0.2), seed=3), SHORT),
    "polly, refuse": (Policy(schedule=polly_interval(0.2)), failing("refuse")),
    "decorrelated, then": (
        Policy(
            schedule=sequence([0.005]).then(decorrelated(0.005).cap(0.2)),
            max_attempts=4,
            budget=RatioBudget(reserve=10),
        ),
        SHORT,
    ),
    "all limits": (
        Policy(
            schedule=constant(0.2).jitter(0.5),
            max_attempts=2,
            max_elapsed=4,
            limits="all",
        ),
        SHORT,
    ),
    "delays of a rule": (
        Policy(
            rules=[
                Rule(on=TimeoutError, schedule=uniform(0, 1)),
                Rule(on=OSError, schedule=decorrelated(0.1), max_attempts=3),
            ],
            schedule=[0.1, 0.2],
        ),
        failing("refuse"),
    ),
    "mixed": (
        [Clients(THREE, share=0.2), Clients(RATIO, processes=4), Clients(Policy())],
        SHORT,
    ),
    "mixed timeouts": (
        [Clients(THREE, timeout=0.5), Clients(JITTERED, timeout=2)],
        SHORT,
    ),
}
"""Clients, and the settings of `simulate`, by name."""


def scene_of(policy, kind, load="70%"):
    """Return the scene of a fleet with one policy after an outage of some kind."""
    server, outage = Server(), Outage("10s", kind)
    return Scene(
        populations=[
            (Clients(policy), check_policy(policy, errors_of(outage, None), None))
        ],
        layers=[],
        made_by=None,
        load=parse_load(load, server),
        servers=[server],
        between=[],
        outage=outage,
        seed=1,
        network=1_000_000,
        late_answers=False,
        seconds=30,
    )

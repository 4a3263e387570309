# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of the hypothesis strategies; checked, never run."""

from datetime import timedelta
from typing import assert_type

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from retrykit import Policy, schedules as s
from retrykit.schedules import Schedule
from retrykit.testing.strategies import (
    durations,
    failure_scripts,
    policies,
    schedules,
    seeds,
)

assert_type(durations("1s", timedelta(hours=1)), SearchStrategy[float])
assert_type(seeds(), SearchStrategy[int])
assert_type(schedules(correlated=False), SearchStrategy[Schedule])
assert_type(policies(max_attempts=3), SearchStrategy[Policy])
policies(schedules=schedules())
policies(schedules=st.lists(durations()))
policies(schedules=s.linear(1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
failing = failure_scripts(errors=[OSError, TimeoutError("late")], succeeds=False)
assert_type(failing, SearchStrategy[list[object]])
failure_scripts(errors=OSError)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
failure_scripts(errors=[SystemExit])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]

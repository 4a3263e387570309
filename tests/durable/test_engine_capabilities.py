"""How long an engine can hold a job, and in which hops."""

import pytest
from hypothesis import given, strategies as st

from retrykit.durable import Capabilities

DURATIONS = st.floats(0, 1e9)


class TestCapabilities:
    def test_hold_a_job_for_at_most_max_hold(self):
        redis = Capabilities("redis", 900.0, 1.0, 0.0, True, False)
        assert [
            redis.next_hold(remaining) for remaining in (-5, 0, 7.5, 900, 3600)
        ] == [
            0,
            0,
            7.5,
            900,
            900,
        ]

    def test_hold_a_job_for_any_time_without_max_hold(self):
        rabbit = Capabilities("rabbitmq", None, 1.0, 1.0, True, False)
        assert [rabbit.next_hold(remaining) for remaining in (-5, 0.2, 7.5, 1e9)] == [
            1,
            1,
            7.5,
            1e9,
        ]

    @given(
        st.floats(-1e9, 1e9), DURATIONS.filter(bool), st.floats(0, 1), st.floats(0, 60)
    )
    def test_split_a_delay_into_hops_that_end_when_it_is_due(
        self, remaining, longest, part, late
    ):
        """However late each hop ends, their number is bounded by the delay."""
        engine = Capabilities("any", longest, 1.0, longest * part, True, True)
        shortest = engine.min_delay
        hops = 0
        while remaining > 0 and hops < 50:
            hop = engine.next_hold(remaining)
            assert shortest <= hop <= longest
            assert hop == pytest.approx(min(max(remaining, shortest), longest))
            remaining -= hop + late
            hops += 1
        assert engine.next_hold(remaining) >= 0

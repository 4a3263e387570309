"""The load of users in a long outage, beside that of independent calls.

M. Brooker, "What is Backoff For?", 2022: backoff sheds the load of users alone.
"""

import pytest

from tests._support.published_tables import CLOSED, load_of_users, multiple
from tests._support.thorough import first_are_quick


@pytest.mark.thorough
@pytest.mark.parametrize("name", first_are_quick(1, CLOSED))
def test_the_load_of_users_is_that_of_the_closed_form(name):
    policy, published = CLOSED[name]
    seconds = 2000 if published < 1 else 700
    assert load_of_users(policy, seconds) == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize("name", first_are_quick(1, CLOSED))
def test_backoff_sheds_no_load_of_independent_calls(name):
    policy, _ = CLOSED[name]
    assert multiple(policy) == pytest.approx(policy.max_attempts or 4, rel=0.03)

import pytest

from retrykit._internal.binary_search import first_where
from retrykit.schedules import constant, sequence


@pytest.mark.parametrize("end", range(3, 12))
@pytest.mark.parametrize("found", range(3, 12))
def test_the_first_integer_that_satisfies_the_condition_is_found(found, end):
    assert first_where(lambda n: n >= found, 3, end) == min(found, end)


def test_more_integers_can_be_searched_than_a_list_can_have_items():
    assert first_where(lambda n: n >= 2**70, 0, 2**80) == 2**70


def test_a_chain_of_schedules_answers_for_a_retry_beyond_the_largest_index():
    assert sequence([1]).then(constant(2)).bounds(2**70) == (2, 2)

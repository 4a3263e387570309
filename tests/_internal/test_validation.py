"""Checks of arguments return the values that follow their rules."""

from datetime import UTC, datetime

from retrykit._internal.validation import check_aware


def test_an_aware_datetime_is_returned():
    noon = datetime(2026, 11, 23, 12, tzinfo=UTC)
    assert check_aware("when", noon) is noon

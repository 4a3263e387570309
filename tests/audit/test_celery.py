"""Tasks of Celery that retry themselves: whose they are, and what they retry."""

import pytest

from tests._support.audited import site_of, sites_of

STATIC = """
from celery import shared_task

class Prices:
    @staticmethod
    @shared_task(bind=True, max_retries=5)
    def load(task):
        try:
            fetch()
        except {caught}:
            {handler}
"""


def test_a_bound_task_may_stand_in_a_class():
    site = site_of(STATIC.format(caught="OSError", handler="task.retry(countdown=9)"))
    told = "6 calls; 9 s, no jitter, 45 s in all; retries OSError"
    assert str(site).endswith(told)


def test_a_method_without_a_task_retries_nothing():
    text = """
    class Prices:
        def load(self):
            self.retry(countdown=9)
    """
    assert sites_of(text) == ()


def test_the_limit_of_a_function_that_gets_a_task_is_unknown():
    text = """
    def reload(self, error):
        raise self.retry(exc=error, countdown=60)
    """
    site = site_of(text)
    assert site.library == "celery"
    assert site.behavior.calls is None


@pytest.mark.parametrize(
    ("caught", "handler", "retried"),
    [
        ("Exception as e", "raise task.retry(exc=e)", ("Exception",)),
        ("(OSError, KeyError)", "raise task.retry()", ("OSError", "KeyError")),
        ("", "task.retry()", ("BaseException",)),
        (
            "Exception as e",
            "if e.fatal: raise\n            task.retry()",
            None,
        ),
    ],
    ids=["everything", "some", "a bare except", "told apart"],
)
def test_the_errors_of_the_handler_are_retried(caught, handler, retried):
    site = site_of(STATIC.format(caught=caught, handler=handler))
    assert site.behavior.retried == retried


def test_errors_that_a_handler_before_raises_are_told_apart():
    handler = "task.retry()"
    text = STATIC.format(
        caught="ValueError:\n            raise\n        except Exception",
        handler=handler,
    )
    assert site_of(text).behavior.retried is None


def test_errors_by_which_a_handler_chooses_a_retry_are_told_apart():
    handler = "kind = kind_of(e)\n            if kind: task.retry()"
    text = STATIC.format(caught="Exception as e", handler=handler)
    assert site_of(text).behavior.retried is None


def test_a_countdown_that_is_a_setting_is_not_random():
    text = STATIC.format(
        caught="OSError", handler="task.retry(countdown=settings.PAUSE)"
    )
    site = site_of("from shop import settings\n" + text)
    assert site.behavior.delays.jitter is False

"""Options of Celery tasks, and kombu's retries of connections."""

import sys
from collections import OrderedDict
from json import JSONDecodeError
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, presets, schedules as s
from retrykit.config import foreign

TRANSPORT = {"recoverable_connection_errors": OSError}


def read(options, *, closest=False, errors=None):
    document = {"task_annotations": {"tasks.add": options}}
    return foreign.read(document, "tasks.add", closest=closest, errors=errors)


def policy(**options):
    return read({"autoretry_for": ["ConnectionError"]} | options).policy


def notes(**options):
    reading = read({"autoretry_for": ["ConnectionError"]} | options)
    return [note.rpartition("tasks.add")[2].lstrip(".") for note in reading.notes]


def refused(**options):
    with pytest.raises(ConfigError) as caught:
        read({"autoretry_for": ["ConnectionError"]} | options)
    return caught.value.message


def connection(
    table, name="task_publish_retry_policy", *, closest=False, errors=TRANSPORT
):
    return foreign.read({name: table}, closest=closest, errors=errors)


def test_the_example_of_the_documentation_is_exact():
    # "Automatic retry for known exceptions", user guide of Celery.
    reading = read({"autoretry_for": ["OSError"], "retry_backoff": True})
    assert reading.policy == presets.celery().replace(on=OSError)
    assert reading[1:] == ("tasks.add", "celery", (), ())
    bounds = [reading.policy.schedule.bounds(retry) for retry in (1, 2, 3)]
    assert bounds == [(0, 1), (0, 2), (0, 4)]


def test_options_may_be_the_dict_of_a_task():
    options = {"name": "add", "autoretry_for": (OSError, KeyError), "max_retries": 5}
    assert foreign.names(options) == ["add"]
    found = foreign.read(options).policy
    delays = presets.celery(max_retries=5, retry_backoff=0)
    assert found == delays.replace(on=(OSError, KeyError))
    assert foreign.names({"autoretry_for": OSError}) == [""]


@pytest.mark.parametrize(
    "text",
    [
        "task_annotations:\n  tasks.add: {autoretry_for: [OSError], max_retries: 7}\n",
        "CELERY_TASK_ANNOTATIONS:\n  tasks.add: {max_retries: 7, retry_backoff: 1}",
        "tasks:\n  - name: x\n  - tasks.add: {autoretry_for: OSError, max_retries: 7}",
    ],
)
def test_tasks_in_a_file_are_found_by_name(tmp_path, text):
    path = tmp_path / "celery.yaml"
    path.write_text(text)
    assert foreign.names(path) == ["tasks.add"]
    assert foreign.read(path, closest=True).policy.max_attempts == 8


@pytest.mark.parametrize(
    "document",
    [
        {"max_retries": 3},
        {"retry_backoff": 3},
        {"task_annotations": {"tasks.add": {"rate_limit": "10/s"}}},
        {"task_annotations": [1, {"tasks.add": None}]},
        {"retry_policy": {"max_retries": 3}},
        {"task_publish_retry_policy": None},
        {"window": {"interval_start": 0, "interval_end": 70}},
    ],
)
def test_other_documents_have_no_tasks(document):
    assert foreign.names(document, format="celery") == []


def test_the_defaults():
    assert policy() == Policy(
        schedule=s.constant(180), max_attempts=4, on=ConnectionError, max_failures=100
    )


def test_every_option_has_its_effect():
    options = {
        "max_retries": 2,
        "retry_backoff": 3,
        "retry_backoff_max": 5,
        "retry_jitter": False,
        "dont_autoretry_for": ["BrokenPipeError"],
    }
    assert policy(**options) == Policy(
        schedule=s.exponential(3).cap(5),
        max_attempts=3,
        on=ConnectionError,
        give_up_on=BrokenPipeError,
        max_failures=100,
    )
    assert policy(default_retry_delay=1.5).schedule == s.constant(1.5)


@given(
    backoff=st.integers(0, 100) | st.booleans() | st.floats(0.01, 99),
    longest=st.integers(1, 4000),
    jitter=st.booleans(),
    retries=st.integers(1, 20),
)
def test_delays_are_those_of_the_formula(backoff, longest, jitter, retries):
    found = policy(
        retry_backoff=backoff,
        retry_backoff_max=longest,
        retry_jitter=jitter,
        max_retries=retries,
    )
    assert found.max_attempts == retries + 1
    for retry in range(retries):
        most = min(longest, int(max(1.0, backoff)) * 2**retry) if backoff else 180
        least = 0 if jitter and backoff else most
        assert found.schedule.bounds(retry + 1) == (least, most)


def test_null_is_no_limit():
    assert policy(max_retries=None).max_attempts is None
    assert policy(retry_kwargs={"max_retries": None}).max_attempts == 4


def test_retry_kwargs_apply():
    kwargs = {"max_retries": 9, "countdown": 7, "queue": "slow"}
    found = policy(max_retries=1, retry_kwargs=kwargs)
    assert (found.max_attempts, found.schedule) == (10, s.constant(7))


def test_options_without_effect_are_noted():
    told = "has no effect without autoretry_for and retry_backoff"
    assert notes(retry_jitter=False, retry_backoff_max=2) == [
        f"retry_backoff_max: {told}",
        f"retry_jitter: {told}",
    ]
    told = "has no effect beside retry_backoff"
    more = {"default_retry_delay": 9, "retry_kwargs": {"countdown": 7}}
    assert notes(retry_backoff=2, **more) == [
        f"default_retry_delay: {told}",
        f"countdown: {told}",
    ]


def test_time_limits_are_noted():
    told = "limits an attempt; the policy has no attempt_timeout"
    assert notes(time_limit=9, soft_time_limit=8) == [
        f"time_limit: {told}",
        f"soft_time_limit: {told}",
    ]


def test_options_that_are_not_about_retries_are_ignored():
    assert notes(rate_limit="10/s", acks_late=True, queue="slow", bind=True) == []


def test_options_of_every_task_apply_before_those_of_one():
    everywhere = {"max_retries": 1, "retry_backoff": 2}
    own = {"autoretry_for": ["OSError"], "max_retries": 6, "retry_jitter": False}
    document = {"task_annotations": {"*": everywhere, "add": own}}
    assert foreign.names(document) == ["*", "add"]
    reading = foreign.read(document, "add")
    delays = presets.celery(max_retries=1, retry_backoff=2, retry_jitter="none")
    assert reading.policy == delays.replace(on=OSError)
    note = "max_retries: the one of '*' applies, which Celery sets last"
    assert reading.notes == (f"task_annotations.add.{note}",)
    assert foreign.read(document, "*", closest=True).policy.max_attempts == 2


def test_without_autoretry_for_the_errors_are_a_difference():
    told = "only the task itself retries errors; the policy retries each"
    with pytest.raises(ConfigError, match=told):
        read({"default_retry_delay": 9})
    reading = read({"default_retry_delay": 9, "retry_backoff": True}, closest=True)
    assert reading.policy.on is Exception
    assert reading.policy.schedule == s.constant(9)
    assert reading.differences == (f"task_annotations.tasks.add.autoretry_for: {told}",)


@pytest.mark.parametrize(
    ("names", "condition"),
    [
        ("OSError, KeyError", (OSError, KeyError)),
        ("json.decoder.JSONDecodeError", JSONDecodeError),
        (["json.decoder:JSONDecodeError"], JSONDecodeError),
        ([JSONDecodeError], JSONDecodeError),
        ("mine.Error", LookupError),
        ("OSError, mine.Error", (OSError, LookupError)),
    ],
)
def test_errors_are_named_as_in_files_of_retrykit(names, condition):
    found = read({"autoretry_for": names}, errors={"mine.Error": LookupError})
    assert found.policy.on == condition


def test_reading_imports_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    message = refused(autoretry_for=["antigravity.Error"])
    assert "import antigravity first" in message
    assert "antigravity" not in sys.modules


def test_reading_runs_no_code_of_a_module(monkeypatch):
    def run(name):
        raise AssertionError(name)

    module = ModuleType("lazy_errors")
    module.__getattr__ = run
    monkeypatch.setitem(sys.modules, "lazy_errors", module)
    assert "has no such type" in refused(autoretry_for=["lazy_errors.Error"])


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"max_retries": -1}, "max_retries must be an integer >= 0"),
        ({"retry_backoff": -1}, "retry_backoff must be a number >= 0"),
        ({"retry_jitter": "maybe"}, "retry_jitter must be true or false"),
        ({"default_retry_delay": "1m"}, "default_retry_delay must be a number >= 0"),
        ({"autoretry_for": [1]}, "autoretry_for must be a list of names of exceptions"),
        ({"autoretry_for": ["int"]}, "must be an Exception type"),
        ({"retry_kwargs": {"countdown": -1}}, "countdown must be a number >= 0"),
        ({"retry_kwargs": {"max_retry": 1}}, "did you mean max_retries?"),
        ({"retry_backof": 1}, "did you mean retry_backoff?"),
    ],
)
def test_bad_values_are_refused(options, rule):
    message = refused(**options)
    assert message.startswith("task_annotations.tasks.add")
    assert rule in message


def test_errors_have_their_line(tmp_path):
    path = tmp_path / "celery.json"
    path.write_text('{"add": {\n"autoretry_for": ["OSError"],\n"max_retries": "x"}}')
    with pytest.raises(ConfigError) as caught:
        foreign.read(path)
    message = f"{path}, line 3: max_retries must be an integer >= 0, got 'x'"
    assert caught.value.message == message


def test_the_default_policy_of_publishing_is_exact():
    # Of task_publish_retry_policy, in the documentation of Celery.
    table = {
        "max_retries": 3,
        "interval_start": 0,
        "interval_step": 0.2,
        "interval_max": 1,
    }
    reading = connection(table)
    assert reading.policy == Policy(
        schedule=s.sequence([0]).then(s.linear(0.2)).cap(1),
        max_attempts=4,
        on=OSError,
    )
    assert reading[1:] == ("task_publish_retry_policy", "celery", (), ())


def test_a_policy_of_a_connection_may_have_any_name():
    table = {"interval_start": 2, "interval_max": 2}
    assert foreign.names({"publish": {"retry_policy": table}}) == ["retry_policy"]
    assert foreign.names({"options": table}) == ["options"]


def test_without_the_errors_of_the_transport_they_are_a_difference():
    table = OrderedDict(interval_start=1, interval_step=0, interval_max=1)
    with pytest.raises(ConfigError, match="errors: of the transport; errors="):
        connection(table, errors=None)
    reading = connection(table, errors=None, closest=True)
    assert reading.policy.on is Exception
    assert reading.policy.schedule == s.constant(1)


def test_other_errors_of_a_publication_are_retried():
    table = {"interval_start": 1, "retry_errors": ["KeyError"]}
    assert connection(table).policy.on == (OSError, KeyError)


@pytest.mark.parametrize(
    ("name", "attempts", "delays"),
    [
        ("task_publish_retry_policy", None, [1, 1, 1]),
        ("broker_transport_options", None, [9, 11, 13]),
        ("result_backend_transport_options", 21, [0, 1, 1]),
    ],
)
def test_keys_that_are_not_given_are_those_of_kombu(name, attempts, delays):
    table = {"retry_policy": {"timeout": 5}} if name.startswith("result") else {}
    if name.startswith("broker"):
        table = {"interval_start": 9, "visibility_timeout": 3600}
    reading = connection(table, name)
    assert reading.policy.max_attempts == attempts
    assert [reading.policy.schedule.bounds(x)[0] for x in (1, 2, 3)] == delays
    assert reading.notes[0].endswith(": not given, so the default of kombu applies")


def test_null_is_no_limit_of_a_connection():
    assert connection({"max_retries": None}).policy.max_attempts is None
    table = {"retry_policy": {"max_retries": None, "timeout": 5.0}}
    found = connection(table, "result_backend_transport_options").policy
    assert (found.max_attempts, found.max_elapsed) == (None, 5)
    assert found.deadline == "overshoot"


def test_steps_that_do_not_meet_the_longest_delay_stay_below_it():
    table = {"interval_start": 0.5, "interval_step": 0.4, "interval_max": 1.5}
    schedule = connection(table).policy.schedule
    delays = [schedule.bounds(retry)[0] for retry in range(1, 6)]
    assert delays == pytest.approx([0.5, 0.9, 1.3, 1.5, 1.5])
    table = {"interval_start": 0, "interval_step": 0.4, "interval_max": 1}
    schedule = connection(table).policy.schedule
    assert schedule.bounds(9) == pytest.approx((0.8, 0.8))


def test_very_many_steps_end_with_the_longest_delay():
    table = {"interval_start": 0, "interval_step": 1e-9, "interval_max": 1}
    assert connection(table).policy.schedule.bounds(1) == (0, 0)


def test_an_unknown_key_of_a_connection_is_told_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean interval_step"):
        connection({"interval_stp": 1})

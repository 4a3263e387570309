"""Templates of Argo Workflows, with the delays of its controller."""

import json

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError
from retrykit.config.foreign import names, read
from retrykit.presets import argo
from retrykit.schedules import constant

# The example "retry-backoff" of Argo.
EXAMPLE = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: retry-backoff-
spec:
  entrypoint: retry-backoff
  templates:
  - name: retry-backoff
    retryStrategy:
      limit: "10"
      backoff:
        duration: "1"
        factor: "2"
        maxDuration: "1m"
        cap: "5"
      affinity:
        nodeAntiAffinity: {}
    container:
      image: python:alpine3.23
"""


def template(**strategy):
    return {"name": "fetch", "retryStrategy": strategy}


def workflow(*templates, kind="Workflow", **spec):
    spec = {"entrypoint": "fetch", "templates": [*templates], **spec}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "spec": spec}


def delays(policy, number):
    return list(policy.schedule.take(number).draw())


@pytest.fixture
def write(tmp_path):
    def write(suffix, text):
        path = tmp_path / f"workflow{suffix}"
        path.write_text(text, "utf-8")
        return path

    return write


def test_the_example_of_argo(write):
    path = write(".yaml", EXAMPLE)
    reading = read(path)
    assert (reading.name, reading.format) == ("retry-backoff", "argo")
    assert reading.policy == argo()
    assert delays(reading.policy, 5) == [1, 2, 4, 5, 5]
    assert (reading.policy.max_attempts, reading.policy.max_elapsed) == (11, 60)
    assert reading.differences == ()
    place = f"{path}, line 14: backoff.maxDuration"
    text = "also ends a running attempt that is not the first"
    assert reading.notes == (f"{place}: {text}",)


@pytest.mark.parametrize(
    ("limit", "attempts"), [(3, 4), ("3", 4), (0, 1), (-1, 1), (None, None)]
)
def test_the_limit_counts_retries(limit, attempts):
    policy = read(template(limit=limit, retryPolicy="Always")).policy
    assert policy.max_attempts == attempts
    assert policy.schedule == constant(0)
    assert policy.max_elapsed is None


@pytest.mark.parametrize("factor", [None, 0, "-1", 1])
def test_without_growth_each_delay_is_the_first(factor):
    backoff = {"duration": "10s", "factor": factor}
    policy = read(template(limit=3, backoff=backoff)).policy
    assert policy.schedule == constant(10)
    policy = read(template(limit=3, backoff=backoff | {"cap": "4"})).policy
    assert policy.schedule == constant(4)


@pytest.mark.parametrize(
    ("written", "seconds"), [("10", 10), ("+7", 7), ("1m30s", 90), ("500ms", 0.5)]
)
def test_durations_are_seconds_or_of_go(written, seconds):
    backoff = {"duration": written, "cap": "", "maxDuration": None}
    assert delays(read(template(limit=1, backoff=backoff)).policy, 1) == [seconds]


def test_argo_waits_only_if_there_is_a_limit():
    reading = read(template(backoff={"duration": "10s", "factor": 2}))
    assert reading.policy.schedule == constant(0)
    assert reading.policy.max_attempts is None
    note = "retryStrategy.backoff: Argo waits only if there is a limit"
    assert reading.notes == (note,)
    assert read(template(backoff={"duration": "0"})).notes == ()


def test_a_time_without_a_limit_is_a_difference():
    document = template(backoff={"duration": "10s", "maxDuration": "1m"})
    with pytest.raises(ConfigError, match="without a limit, Argo compares maxDuration"):
        read(document)
    policy = read(document, closest=True).policy
    assert (policy.max_attempts, policy.max_elapsed) == (None, 60)


@pytest.mark.parametrize("retried", [None, "Always", "OnFailure"])
def test_failures_are_retried(retried):
    reading = read(template(limit=1, retryPolicy=retried))
    assert (reading.policy.on, reading.differences) == (Exception, ())


@pytest.mark.parametrize(
    ("retried", "on", "difference"),
    [
        ("OnError", Exception, "retries errors of Argo and Kubernetes alone"),
        (
            "OnTransientError",
            (ConnectionError, TimeoutError),
            "retries what Argo's patterns match",
        ),
    ],
)
def test_other_errors_are_a_difference(retried, on, difference):
    document = template(limit=1, retryPolicy=retried)
    with pytest.raises(ConfigError, match=f"retryPolicy: {difference}"):
        read(document)
    assert read(document, closest=True).policy.on == on
    assert read(document, errors={retried: OSError}).policy.on is OSError


def test_an_expression_is_a_difference():
    expression = "asInt(lastRetry.exitCode) > 1 && '{{=x}}' != ''"
    document = template(limit=1, expression=expression)
    with pytest.raises(ConfigError, match="expression: is not computed"):
        read(document)
    reading = read(document, closest=True)
    assert (reading.policy.on, len(reading.differences)) == (Exception, 1)


def test_a_deadline_of_the_template_is_told():
    reading = read(template(limit=1) | {"activeDeadlineSeconds": 60})
    text = "limits an attempt; the policy has no attempt_timeout"
    assert reading.notes == (f"activeDeadlineSeconds: {text}",)


DEFAULTS = {"limit": 10, "backoff": {"duration": "10s", "factor": 2, "cap": "1m"}}


def test_templates_are_merged_with_the_defaults():
    document = workflow(
        template(limit=2, backoff={"duration": "1s"}),
        {"name": "other"},
        templateDefaults={"retryStrategy": DEFAULTS},
        retryStrategy={"limit": 99},
    )
    assert names(document) == ["spec", "fetch", "templateDefaults"]
    reading = read(document, "fetch")
    assert reading.policy == argo(
        limit=2, duration=1, factor=2, cap=60, max_duration=None
    )
    where = "spec.templates[0].retryStrategy"
    text = (
        "is merged with templateDefaults, of which it has backoff.factor, backoff.cap"
    )
    assert reading.notes == (f"{where}: {text}",)
    reading = read(document, "templateDefaults")
    assert reading.policy.max_attempts == 11
    assert reading.notes == ()


def test_what_is_of_the_defaults_is_told():
    document = workflow(template(limit=2), templateDefaults={"retryStrategy": DEFAULTS})
    reading = read(document, "fetch")
    assert reading.policy.max_attempts == 3
    assert delays(reading.policy, 4) == [10, 20, 40, 60]
    text = "is merged with templateDefaults"
    note = f"spec.templates[0].retryStrategy: {text}, of which it has backoff"
    assert reading.notes == (note,)
    document = workflow(
        template(**DEFAULTS), templateDefaults={"retryStrategy": DEFAULTS}
    )
    note = f"spec.templates[0].retryStrategy: {text}"
    assert read(document, "fetch").notes == (note,)


def test_defaults_without_a_strategy_change_nothing():
    document = workflow(template(limit=2), templateDefaults={"timeout": "1m"})
    assert read(document).notes == ()


def test_a_template_applies_before_the_whole_workflow():
    document = workflow(template(limit=2), retryStrategy={"limit": 5})
    assert names(document) == ["spec", "fetch"]
    reading = read(document, "fetch")
    assert reading.policy.max_attempts == 3
    text = "applies, not the retryStrategy of the whole workflow"
    assert reading.notes == (f"spec.templates[0].retryStrategy: {text}",)
    reading = read(document, "spec")
    assert reading.policy.max_attempts == 6
    text = "is for templates without a strategy of their own"
    assert reading.notes == (f"spec.retryStrategy: {text}",)


def test_cron_workflows_have_their_templates_deeper():
    inner = workflow(template(limit=2))["spec"]
    document = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "CronWorkflow",
        "spec": {"schedule": "* * * * *", "workflowSpec": inner},
    }
    assert names(document) == ["fetch"]
    assert read(document).policy.max_attempts == 3


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"limit": "{{inputs.parameters.n}}"}, "limit must be written out, got '{{in"),
        ({"limit": 1.5}, "limit must be an integer"),
        (
            {"retryPolicy": "Never"},
            "retryPolicy must be one of Always, OnFailure, OnEr",
        ),
        ({"limit": 1, "backof": {}}, "no key 'backof'; did you mean backoff?"),
        ({"backoff": {"duration": 10}}, 'duration must be a string such as "10" or'),
        ({"backoff": {"duration": "1d"}}, "duration must be a duration such as"),
        ({"backoff": {"factor": 2}}, "backoff must be a table with duration"),
        ({"backoff": {"duration": ""}}, "backoff must be a table with duration"),
        ({"backoff": {"duration": "1", "factor": 1.5}}, "factor must be an integer"),
        ({"backoff": {"duration": "1", "max": 1}}, "backoff has no key 'max'"),
        (
            {"limit": 1, "backoff": {"duration": "1", "maxDuration": "0"}},
            "max_duration must be",
        ),
    ],
)
def test_bad_values_are_refused(strategy, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        read(template(**strategy))


def test_a_bad_value_has_its_line(write):
    text = EXAMPLE.replace('"1m"', '"1 minute"')
    with pytest.raises(ConfigError, match=r"workflow.yaml, line 14: maxDuration must"):
        read(write(".yaml", text))
    text = json.dumps(workflow(template(limits=2)), indent=1)
    with pytest.raises(
        ConfigError, match=r"line 10: retryStrategy has no key 'limits'"
    ):
        read(write(".json", text))


@pytest.mark.parametrize(
    "document",
    [
        {"retryStrategy": {"attempts": 3, "evaluateOnExit": []}},
        {"retryStrategy": {"steps": 3, "duration": "1s", "factor": 2}},
        {"retryStrategy": "text"},
        {"retry": {"limit": 2, "backoff": {"duration": "5s"}}},
    ],
    ids=["AWS Batch", "Argo Events", "text", "Argo CD"],
)
def test_other_tables_are_no_templates(document):
    assert names(document, format="argo") == []


@given(
    st.integers(0, 50),
    st.integers(0, 1000),
    st.integers(0, 4),
    st.none() | st.integers(0, 1000),
)
def test_drawn_strategies_have_the_delays_of_argo(limit, duration, factor, cap):
    backoff = {"duration": f"{duration}s", "factor": factor}
    if cap is not None:
        backoff["cap"] = str(cap)
    policy = read(template(limit=limit, backoff=backoff)).policy
    expected = []
    for children in range(1, limit + 1):
        wait = duration * factor ** (children - 1) if factor > 0 else duration
        expected.append(wait if cap is None else min(wait, cap))
    assert delays(policy, limit) == pytest.approx(expected)
    assert policy.max_attempts == limit + 1

"""The dashboard, the alert rules and the page name the metrics that are exported."""

import asyncio
import json
import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from retrykit import Hedge, Policy, observe
from retrykit._core.failures import StopReason
from retrykit.budgets import TokenBucket
from retrykit.integrations.prometheus import BudgetCollector, LimitCollector, observer
from retrykit.limits import CircuitBreaker
from retrykit.limits._circuit_state import CircuitState
from retrykit.testing import virtual_time

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = json.loads((DOCS / "grafana_dashboard.json").read_text("utf-8"))
RULES = yaml.safe_load((DOCS / "alert_rules.yml").read_text("utf-8"))

EXPRESSIONS = [
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *(rule["expr"] for group in RULES["groups"] for rule in group["rules"]),
]
QUERIES = [
    variable["query"]["query"]
    for variable in DASHBOARD["templating"]["list"]
    if variable["type"] == "query"
]
# Prometheus adds these to what it scrapes.
TARGET = {"job", "instance"}


def fail():
    raise OSError


@pytest.fixture(scope="module")
def exported():
    """Return the labels of each sample that the observer exports, by its name."""
    registry = CollectorRegistry()
    registry.register(BudgetCollector({"payments": TokenBucket()}))
    registry.register(LimitCollector({"orders": CircuitBreaker()}))
    with observe(observer(registry=registry)):
        Policy(schedule=[0], on=OSError).run(fail)
        Policy().run(int)
        hedge = Hedge(0, extra=1, idempotent=True)
        with virtual_time() as clock:
            with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
                runner.run(Policy(hedge=hedge).acall(asyncio.sleep, 1))
    page = generate_latest(registry).decode()
    return {
        sample.name: {*sample.labels}
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def metrics_in(expression):
    """Yield each metric of an expression, and the labels that it selects."""
    for name, selectors in re.findall(r"(retrykit_\w+)(?:\{([^}]*)\})?", expression):
        yield name, {*re.findall(r"(\w+)\s*[=!]~?\s*\"", selectors)}


@pytest.mark.parametrize("expression", EXPRESSIONS + QUERIES)
def test_an_expression_uses_metrics_and_labels_that_exist(exported, expression):
    found = [*metrics_in(expression)]
    assert found
    for name, labels in found:
        assert name in exported
        assert labels <= exported[name] | TARGET
        for grouped in re.findall(r"by \(([^)]*)\)", expression):
            assert {*re.findall(r"\w+", grouped)} <= exported[name] | TARGET


@pytest.mark.parametrize("expression", EXPRESSIONS + QUERIES)
def test_an_expression_selects_values_that_exist(expression):
    values = re.findall(r'(?:outcome|reason|retried|state)[=!]~?"([^"$]*)"', expression)
    known = {"true", "false", "succeeded", "failed", "gave_up", "interrupted"}
    known |= {*StopReason, *get_args(CircuitState)}
    assert {each for value in values for each in value.split("|")} <= known


def test_a_legend_names_labels_that_its_expression_keeps():
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            named = {*re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])}
            kept = re.findall(r"by \(([^)]*)\)", target["expr"])
            assert named <= {*re.findall(r"\w+", kept[0])}


def test_an_annotation_names_labels_that_its_rule_keeps():
    for group in RULES["groups"]:
        for rule in group["rules"]:
            text = " ".join(rule["annotations"].values())
            named = {*re.findall(r"\$labels\.(\w+)", text)}
            kept = re.findall(r"by \(([^)]*)\)", rule["expr"])
            assert named <= {*re.findall(r"\w+", kept[0])}


def test_the_rules_are_about_retries_budgets_breakers_and_giving_up():
    alerts = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]
    assert alerts == [
        *("ManyCallsNeedARetry", "CallsGiveUp"),
        *("BudgetStopsRetries", "BudgetEmpty", "CircuitBreakerOpen"),
    ]


def test_the_panels_of_the_dashboard_do_not_overlap():
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len({*cells})
    assert max(x for x, _ in cells) == 23
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len({*ids})


PAGE = (DOCS / "observability.md").read_text("utf-8")
TABLE = re.findall(r"^\| `(retrykit[\w.]+)` \| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE)


def test_the_page_has_every_metric_with_its_labels(exported):
    names = {name.removesuffix("_bucket") for name in exported}
    # The parts of a histogram, and the times at which series were created.
    parts = ("_count", "_sum", "_created")
    listed = {name: {*re.findall(r"`(\w+)`", labels)} for _, name, labels in TABLE}
    assert listed.keys() == {name for name in names if not name.endswith(parts)}
    for name, labels in listed.items():
        sample = name if name in exported else f"{name}_sum"
        assert labels == exported[sample]


def test_the_page_has_the_names_that_opentelemetry_exports_them_under():
    for name, other, _ in TABLE:
        assert other.removesuffix("_total").removesuffix("_seconds") == (
            name.replace(".", "_")
        )


def test_the_page_shows_metrics_as_the_example_prints_them():
    example = (DOCS.parent / "examples" / "observed_service.py").read_text("utf-8")
    printed = re.findall(r"^    (retrykit_.+)$", example, re.MULTILINE)
    shown = re.findall(r"^(retrykit_\w+\{.+)$", PAGE, re.MULTILINE)
    full = 'function="GET 127.0.0.1"'
    assert shown == [x.replace("function=...", full) for x in printed][: len(shown)]
    assert len(shown) == 10
    settings = r"^\w+ = (TokenBucket\(.+\))\nPOLICY = (policy\(.+), budget=\w+\)$"
    [on_page] = re.findall(settings, PAGE, re.MULTILINE)
    assert [on_page] == re.findall(settings, example, re.MULTILINE)

"""Tenacity's strategies: their names, arguments and combinations."""

from typing import Final

import libcst as cst

from retrykit.migrate._expressions import OURS, code
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._source import Arguments, Source

__all__ = ["ADAPTERS", "STRATEGIES", "brief", "needed", "operands", "parts_of"]


ADAPTERS: Final = f"{OURS}.integrations.tenacity"
"""The text of the module that adapts strategies and hooks of tenacity."""


STRATEGIES = {
    "stop_after_attempt": "max_attempt_number",
    "stop_after_delay": "max_delay",
    "stop_before_delay": "max_delay",
    "stop_when_event_set": "event",
    "wait_fixed": "wait",
    "wait_random": "min max",
    "wait_incrementing": "start increment max",
    "wait_exponential": "multiplier max exp_base min",
    "wait_random_exponential": "multiplier max exp_base min",
    "wait_full_jitter": "multiplier max exp_base min",
    "wait_exponential_jitter": "initial max exp_base jitter min multiplier",
    "wait_exception": "predicate",
    "retry_if_exception": "predicate",
    "retry_if_exception_type": "exception_types",
    "retry_if_not_exception_type": "exception_types",
    "retry_unless_exception_type": "exception_types",
    "retry_if_exception_cause_type": "exception_types",
    "retry_if_exception_message": "message match",
    "retry_if_not_exception_message": "message match",
    "retry_if_result": "predicate",
    "retry_if_not_result": "predicate",
    "sleep_using_event": "event",
    "before_log": "logger log_level",
    "after_log": "logger log_level sec_format",
    "before_sleep_log": "logger log_level exc_info sec_format",
}
"""The parameters of each strategy or hook, in their order, separated by spaces."""


_COMBINATIONS = {"stop_any", "stop_all", "retry_any", "retry_all", "wait_combine"}


def parts_of(
    source: Source, node: cst.BaseExpression
) -> tuple[str, Arguments, cst.BaseExpression]:
    """Return the name of a strategy of tenacity, its arguments, and its node.

    A variable that is assigned once is replaced by its value. The name is empty if the
    node is not from tenacity; the arguments of combinations are not read.
    """
    node = source.value(node)
    called = node.func if isinstance(node, cst.Call) else node
    found = source.library_name(called)
    if found is None or found[0] != "tenacity":
        return "", Arguments(source, None, ""), node
    name = found[1]
    call = node if isinstance(node, cst.Call) else None
    if name in _COMBINATIONS or name == "wait_chain":
        return name, Arguments(source, None, ""), node
    return name, Arguments(source, call, STRATEGIES.get(name, "")), node


def operands(
    source: Source,
    node: cst.BaseExpression,
    operator: type[cst.BaseBinaryOp],
    name: str,
) -> list[cst.BaseExpression] | None:
    """Return the operands of an operator, or of the function *name*; else None.

    Raises:
        Untranslatable: The arguments of the function are computed.
    """
    node = source.value(node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, operator):
        sides = (node.left, node.right)
        parts = [operands(source, x, operator, name) or [x] for x in sides]
        return [each for part in parts for each in part]
    if not isinstance(node, cst.Call) or source.library_name(node.func) != (
        "tenacity",
        name,
    ):
        return None
    if any(arg.star or arg.keyword for arg in node.args):
        raise Untranslatable("its strategies are computed")
    parts = [operands(source, x.value, operator, name) or [x.value] for x in node.args]
    return [each for part in parts for each in part]


def needed(arguments: Arguments, name: str) -> cst.BaseExpression:
    """Return an argument that has no default.

    Raises:
        Untranslatable: The argument is not given.
    """
    value = arguments.get(name)
    if value is None:
        raise Untranslatable(f"it has no {name}")
    return value


def brief(node: cst.BaseExpression) -> str:
    """Return the text of a node, cut to 40 characters."""
    text = " ".join(code(node).split())
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004

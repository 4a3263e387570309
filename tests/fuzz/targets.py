"""All fuzz targets, by their names."""

from importlib import import_module

from tests._support.required import installed
from tests.fuzz import (
    command_line,
    durable,
    foreign,
    headers,
    names,
    objects,
    policies,
    redaction,
    schedules,
    service_configs,
    sources,
    states,
)

__all__ = ["TARGETS"]

_MODULES = (schedules, policies, names, states, headers, service_configs, durable)
_MODULES += (command_line, objects, redaction, foreign, sources)

if installed("libcst"):
    _MODULES += (import_module("tests.fuzz.migrations"),)

TARGETS = {target.name: target for module in _MODULES for target in module.TARGETS}

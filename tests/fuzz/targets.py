"""All fuzz targets, by their names."""

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

TARGETS = {target.name: target for module in _MODULES for target in module.TARGETS}

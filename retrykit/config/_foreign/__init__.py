"""Formats in which other systems keep policies, each in a module of its own."""

from importlib import import_module

from retrykit.config._foreign._format import Format

__all__ = ["NAMES", "format_named"]

NAMES = (
    "argo",
    "celery",
    "cloud-tasks",
    "envoy",
    "exim",
    "istio",
    "pubsub",
    "resilience4j",
    "spring",
    "step-functions",
    "temporal",
)
"""The names of all formats, in alphabetical order."""


def format_named(name: str) -> Format:
    """Return a format, importing its module on first use."""
    module = import_module(f"{__name__}._{name.replace('-', '_')}")
    own: Format = module.FORMAT
    return own

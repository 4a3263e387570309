"""Translation of tenacity's arguments to policy settings."""

from retrykit.migrate._tenacity._settings import PARAMETERS, settings
from retrykit.migrate._tenacity._strategies import ADAPTERS

__all__ = ["ADAPTERS", "PARAMETERS", "settings"]

"""Formats of other systems, a module each, on documents and sections."""

from typing import Final

from retrykit.config._foreign._format import Format
from retrykit.config._foreign._step_functions import STEP_FUNCTIONS

__all__ = ["FORMATS"]

FORMATS: Final[tuple[Format, ...]] = (STEP_FUNCTIONS,)
"""All formats, in the order of their names."""

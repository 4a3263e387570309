"""Reference data: the tables of real systems, of limits and of a stored envelope."""

import json
from pathlib import Path

__all__ = ["reference_data"]

FOLDER = Path(__file__).parent / "vectors"


def reference_data(name):
    """Return what the JSON file of that name holds."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))

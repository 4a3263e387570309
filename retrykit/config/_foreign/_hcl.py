"""HCL, the language of Terraform, as the data of its syntax in JSON."""

from pathlib import Path
from typing import Any

from retrykit.config._foreign._document import Place

__all__ = ["parse_hcl"]


def parse_hcl(path: Path, text: str) -> tuple[dict[str, Any], dict[Place, int]]:
    """Return the data of a text in HCL, and the lines of its values."""
    raise NotImplementedError(path, text)

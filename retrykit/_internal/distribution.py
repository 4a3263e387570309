"""Name of the distribution, and the command that installs it, as messages say it."""

from typing import Final

__all__ = ["INSTALL", "NAME", "installed_by"]

NAME: Final = "pyretrykit"
"""Unlike that of the package, which another project has on the index."""

# From the first release on: "pip install 'pyretrykit{extras}'".
INSTALL: Final = "in a clone: pip install '.{extras}'"
"""Command that installs the package with extras; a test holds the documents to it."""


def installed_by(extra: str) -> str:
    """Return the command that installs an extra.

    >>> installed_by("httpx")
    "in a clone: pip install '.[httpx]'"
    """
    return INSTALL.format(extras=f"[{extra}]")

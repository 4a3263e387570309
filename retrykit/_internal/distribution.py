"""The distribution's name, the command that installs it, and its site, for messages."""

from typing import Final

__all__ = ["INSTALL", "NAME", "SITE", "installed_by"]

NAME: Final = "pyretrykit"
"""The name on the index, where another project has the name of the package."""

# From the first release on: "pip install 'pyretrykit{extras}'".
INSTALL: Final = "in a clone: pip install '.{extras}'"
"""Command that installs the package, with a field for extras, as in the documents."""


SITE: Final = ""
"""Address of the documentation, with a slash at its end; empty until there is one."""


def installed_by(extra: str) -> str:
    """Return the command that installs an extra.

    >>> installed_by("httpx")
    "in a clone: pip install '.[httpx]'"
    """
    return INSTALL.format(extras=f"[{extra}]")

"""What docstrings say, for those who tell it again: summaries and arguments.

What is documented is not known here.
"""

import inspect
import re

__all__ = ["arguments", "summary"]


def summary(documented: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def arguments(documented: object) -> dict[str, str]:
    """Return what a docstring says of each argument."""
    _, _, section = (inspect.getdoc(documented) or "").partition("\nArgs:\n")
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.split(r"^    (\w+): ", section, flags=re.MULTILINE)[1:]
    return {
        name: " ".join(text.split())
        for name, text in zip(found[::2], found[1::2], strict=True)
    }

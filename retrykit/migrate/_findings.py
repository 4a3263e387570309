"""The usages of other libraries that a migration finds, translated or left alone."""

from typing import NamedTuple

__all__ = ["Migration", "Unknown", "Untranslatable", "Usage"]


class Untranslatable(Exception):  # noqa: N818  a reason, not an error
    """A usage cannot be translated exactly; the text is the reason."""


class Unknown(Untranslatable):
    """The arguments of a usage are known only at run time."""


class Usage(NamedTuple):
    """A usage of another library in a file.

    Attributes:
        line: Its line, from 1, before the migration.
        library: The library, such as ``tenacity``.
        reason: Why it is left as it is; None if it is translated.
    """

    line: int
    library: str
    reason: str | None


class Migration(NamedTuple):
    """A file before and after a migration.

    Attributes:
        before: The text of the file.
        after: The text, in which all usages that can be translated exactly are
            translated, and the others have a comment above them.
        usages: The usages, in the order of their lines.
    """

    before: str
    after: str
    usages: tuple[Usage, ...]

    @property
    def changed(self) -> bool:
        """True if the text has changed."""
        return self.before != self.after

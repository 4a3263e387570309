"""What the hints of this package have in common: they can be written as text.

What each of them reads is not known here.
"""

from typing import ClassVar

from retrykit._internal.frozen import Frozen

__all__ = ["SerializableHint"]


class SerializableHint(Frozen):
    """A hint that compares, prints as what builds it, and has a text.

    Attributes:
        kind: The name of what builds it.
    """

    __slots__ = ()
    kind: ClassVar[str]

    @property
    def text(self) -> str:
        """Its name and its arguments, as `hint_named` reads them."""
        return ":".join([self.kind, *map(str, self._arguments())])

    def _arguments(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in type(self).field_names)

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self._arguments()))})"

"""File formats: how the policies of another system are found and read."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from retrykit._core.policy import Policy
from retrykit.config._foreign._section import Section

__all__ = ["Format"]


class Format(NamedTuple):
    """A format in which another system keeps its policies.

    Attributes:
        title: A description of what is read, for people.
        find: Yields the tables in a document that hold a policy, with their names;
            none if the document is of another format.
        read: Returns the policy of such a table. What a policy cannot express exactly
            is a difference in the table's `Remarks`, or an error.
    """

    title: str
    find: Callable[[Section], Iterator[tuple[str, Section]]]
    read: Callable[[Section], Policy]

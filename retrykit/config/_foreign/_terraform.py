"""Resources and blocks of Terraform, in its own syntax or in JSON."""

from retrykit._internal.validation import invalid_setting
from retrykit.config._foreign._section import Section

__all__ = ["block", "is_resource", "resource_name"]


def is_resource(table: Section, kind: str) -> bool:
    """Return whether a table is a resource of a kind like ``google_pubsub_topic``."""
    names = _names(table)
    return len(names) == _DEPTH and names[:-1] == ["resource", kind]


_DEPTH = 3


def resource_name(resource: Section) -> str:
    """Return the name of a resource; its label, if the name is absent or computed."""
    name = resource.data.get("name")
    # A value that Terraform computes is of a subclass.
    plain = type(name) is str and name and "${" not in name
    return str(name) if plain else _names(resource)[-1]


def block(resource: Section, key: str) -> Section | None:
    """Return a block of a resource; None if there is none.

    Raises:
        ConfigError: The block is dynamic, or there are several.
    """
    for dynamic in resource.sections("dynamic"):
        if key in dynamic.data:
            with dynamic.located(key):
                suggestion = "a reader of files cannot know what it stands for"
                written = f'dynamic "{key}"'
                raise invalid_setting(
                    key, "written out", written, suggestion, code="not-expressible"
                )
    return resource.section(key)


def _names(table: Section) -> list[str]:
    return [each for each in table.place if isinstance(each, str)]

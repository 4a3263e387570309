"""Version of the installed distribution; the build takes the version from the tag.

Imported when somebody asks for the version: `importlib.metadata` takes longer to import
than the rest of the package.
"""

from importlib.metadata import PackageNotFoundError, version

from retrykit._internal.distribution import NAME

__all__ = ["UNKNOWN", "__version__", "version_of"]

UNKNOWN = "0.0"
"""Version of a copy of the package that is not installed, or has no tag."""


def version_of(distribution: str) -> str:
    """Return the version of a distribution, or `UNKNOWN` if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return UNKNOWN


__version__ = version_of(NAME)
"""Version of this package."""

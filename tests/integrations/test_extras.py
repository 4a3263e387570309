"""An integration whose library is missing says how to install it."""

import subprocess
import sys

import pytest

from retrykit._internal.distribution import installed_by
from retrykit._internal.extras import needs
from tests.test_architecture import LIBRARIES

_IMPORT_ALL = """
import importlib, sys
leaves, libraries = [each.split(",") for each in sys.argv[1:]]

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in libraries:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for leaf in leaves:
    try:
        importlib.import_module(f"retrykit.{leaf}")
    except ImportError as error:
        print(leaf, type(error).__name__, error, sep=": ")
"""


def test_an_import_without_the_library_names_the_extra():
    leaves = {name: set(needed.split()) for name, needed in LIBRARIES.items()
              if name.startswith("integrations.")}  # fmt: skip
    names = ",".join(leaves), ",".join(set.union(*leaves.values()))
    done = subprocess.run(  # noqa: S603  this interpreter, and code from above
        [sys.executable, "-c", _IMPORT_ALL, *names],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert found.keys() == leaves.keys()
    for leaf, message in found.items():
        extra = EXTRAS.get(leaf, leaf.rpartition(".")[2])
        assert message.startswith("ImportError: "), leaf
        missing, suggestion = message.removeprefix("ImportError: ").split("; ")
        assert suggestion == installed_by(extra), leaf
        library, rest = missing.split(" ", 1)
        assert rest == "is not installed", leaf
        # Of a namespace, such as google, the library is named.
        assert library == extra if extra in NAMESPACED else library in leaves[leaf]


def test_an_error_in_the_library_itself_passes_through():
    with pytest.raises(ImportError, match=r"^unknown_one is .*'\.\[x\]'$"):
        with needs("x"):
            import unknown_one  # noqa: F401
    with pytest.raises(ImportError, match=r"^cannot import name .abc. from .sys."):
        with needs("x"):
            from sys import abc  # noqa: F401


NAMESPACED = {"azure-core", "google-api-core", "google-genai"}

# The extras that do not have the name of the module.
EXTRAS = {
    "integrations._urllib3_retry": "urllib3",
    "integrations.aio_pika": "aio-pika",
    "integrations.confluent_kafka": "confluent-kafka",
    "integrations.azure_core": "azure-core",
    "integrations.google_api_core": "google-api-core",
    "integrations.google_genai": "google-genai",
}

"""Every public name is imported and described as the first of a new process."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import retrykit
from tests._support import required
from tests._support.documents import ROOT
from tests._support.new_process import run_python


def reference():
    """Return the modules of the reference, which its index lists."""
    index = (ROOT / "docs/reference/index.md").read_text("utf-8")
    return re.findall(r"^(retrykit\.[\w.]+)$", index, re.MULTILINE)


def names_of(module):
    """Yield the public names of a module, and of the modules that it exports."""
    exporting = importlib.import_module(module)
    for name in exporting.__all__:
        yield module, name
        value = getattr(exporting, name)
        if inspect.ismodule(value):
            yield from names_of(value.__name__)


def is_installed(module):
    return not required.missing(f"{module.replace('.', '/')}.py") and not (
        required.missing(f"{module.replace('.', '/')}/__init__.py")
    )


MODULES = ["retrykit", *filter(is_installed, reference())]
CORE = [*dict.fromkeys(names_of("retrykit"))]


def home(module, name):
    """Return the module that exports a name, and the one that defines its value."""
    value = getattr(importlib.import_module(module), name)
    return module, getattr(value, "__module__", type(value).__module__)


def parameters():
    """Return a name for each module that defines some; those of the core are quick.

    Each first name imports all that its module needs.
    """
    others = [each for module in MODULES[1:] for each in names_of(module)]
    first = {home(*each): each for each in reversed([*CORE, *others])}
    for each in first.values():
        marks = [] if each in CORE else [pytest.mark.thorough]
        yield pytest.param(*each, id=".".join(each), marks=marks)


DESCRIBE = """
import inspect, sys, typing
from importlib import import_module

module, *names = sys.argv[1:]
for name in names:
    value = getattr(import_module(module), name)
    assert repr(value)
    if not typing.get_origin(value):
        assert inspect.getdoc(value)
        # Those of classes of Python itself cannot be read.
        own = inspect.isclass(value) and "__init__" in vars(value)
        if own or inspect.isroutine(value):
            inspect.signature(value)
"""


@pytest.mark.parametrize(("module", "name"), [*parameters()])
def test_a_name_is_imported_alone(module, name, tmp_path):
    ended = run_python(DESCRIBE, tmp_path, module, name)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.thorough
@pytest.mark.parametrize("module", MODULES)
def test_all_names_of_a_module_are_described(module, tmp_path):
    names = importlib.import_module(module).__all__
    ended = run_python(DESCRIBE, tmp_path, module, *names)
    assert (ended.code, ended.err) == (0, "")


def test_every_module_is_private_by_its_name_or_in_the_reference():
    folder = Path(retrykit.__file__).parent
    names = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        for path in folder.rglob("*.py")
    }
    public = {
        name.removesuffix(".__init__")
        for name in names
        if "._" not in name.removesuffix(".__init__")
    }
    exported = {f"retrykit.{name}" for name in retrykit.__all__}
    # Packages that export nothing, and one whose library is not installed with others.
    unlisted = {"retrykit.analysis", "retrykit.config", "retrykit.integrations"}
    unlisted |= {"retrykit.integrations.airflow"}
    listed = {"retrykit", *reference(), *unlisted}
    assert public == listed | (public & exported)

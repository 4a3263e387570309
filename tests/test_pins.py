"""The gate installs versions from a list, whatever is released in the meantime."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def test_hooks_of_pre_commit_have_the_versions_of_the_list():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    pins = (ROOT / ".ci" / "pins.txt").read_text("utf-8").splitlines()
    tools = re.findall(r'additional_dependencies: \["([^"]+)"\]', hooks)
    assert {re.sub(r"\[.*\]", "", tool) for tool in tools} <= {*pins}
    assert tools != []


def test_the_list_has_a_version_of_each_requirement():
    versions = {}
    for line in (ROOT / ".ci" / "pins.txt").read_text("utf-8").splitlines()[1:]:
        [version] = (pin := Requirement(line)).specifier
        assert version.operator == "==", line
        # Another Python can have another version.
        versions.setdefault(canonicalize_name(pin.name), []).append(version.version)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lists = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    requirements = [
        Requirement(each) for requirements in lists for each in requirements
    ]
    unmet = [
        str(each)
        for each in requirements
        if each.name != project["project"]["name"]
        and not any(
            map(each.specifier.contains, versions.get(canonicalize_name(each.name), []))
        )
    ]
    assert unmet == [], "nox -s pins renews the list"

"""The share of usages in public packages that are translated exactly."""

import re
from pathlib import Path

from benchmarks.migrated_usages import (
    Package,
    counted,
    read_packages,
    table,
    usages_of,
    write_packages,
)

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"
TEXT = """\
import backoff


@backoff.on_exception(backoff.expo, OSError)
def fetch(): ...


@backoff.on_exception(backoff.expo, BaseException)
def find(): ...
"""


def test_the_list_has_the_numbers_of_the_page():
    packages = read_packages()
    assert len({each.package for each in packages}) == len(packages) >= 40
    assert all(0 <= each.exact <= each.usages for each in packages)
    usages, exact = (sum(x[n] for x in packages) for n in (2, 3))
    [found] = re.findall(r"(\d+) of (\d+) usages in (\d+) packages", PAGE.read_text())
    assert found == (str(exact), str(usages), str(len(packages)))
    assert exact / usages >= 0.75


def test_usages_are_counted(tmp_path):
    (tmp_path / "a.py").write_text(TEXT)
    usages = usages_of(tmp_path)
    package = counted(Package("a", "1", 0, 0), usages)
    assert package == ("a", "1", 2, 1)
    assert table(usages).splitlines()[2:] == [
        "| backoff |      2 |     1 |   50% |",
        "| all     |      2 |     1 |   50% |",
    ]
    write_packages([package], tmp_path / "packages.csv")
    assert read_packages(tmp_path / "packages.csv") == [package]

"""Share of the usages in public packages that ``retrykit migrate`` translates exactly.

``tests/migrate/packages.csv`` lists the packages, each with its version, its usages of
other libraries, and how many of them were translated when the list was written; their
code is not kept. The first run downloads them, about 150 MB of wheels:

    python -m benchmarks.migrated_usages FOLDER [-v] [--write]

It prints the share for each library, and names the packages whose numbers have changed;
``-v`` prints why usages are left as they are; ``--write`` writes the list anew.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.audit_labels import download
from benchmarks.table import markdown
from retrykit.migrate import Usage, migrate_paths

__all__ = ["PACKAGES", "Package", "counted", "read_packages", "table", "usages_of"]

PACKAGES = Path(__file__).parents[1] / "tests/migrate/packages.csv"


class Package(NamedTuple):
    """A package, with the numbers of its usages and of those that are exact."""

    package: str
    version: str
    usages: int
    exact: int


def read_packages(path: Path = PACKAGES) -> list[Package]:
    """Return the packages of a list."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Package(
                row["package"], row["version"], int(row["usages"]), int(row["exact"])
            )
            for row in csv.DictReader(file)
        ]


def write_packages(packages: Iterable[Package], path: Path = PACKAGES) -> None:
    """Write a list of packages."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Package._fields)
        writer.writerows(packages)


def usages_of(folder: Path) -> list[Usage]:
    """Return the usages in a package, translated in memory."""
    return [usage for _, usage in migrate_paths([folder]).usages]


def counted(package: Package, usages: Iterable[Usage]) -> Package:
    """Return a package with the numbers of its usages."""
    reasons = [usage.reason for usage in usages]
    return package._replace(usages=len(reasons), exact=reasons.count(None))


def table(usages: Iterable[Usage]) -> str:
    """Return a table of the libraries, with their usages and how many are exact."""
    every, exact = Counter[str](), Counter[str]()
    for usage in usages:
        every[usage.library] += 1
        exact[usage.library] += usage.reason is None
    every["all"], exact["all"] = every.total(), exact.total()
    rows = [
        [name, str(count), str(exact[name]), f"{exact[name] / max(count, 1):.0%}"]
        for name, count in every.items()
    ]
    return markdown(["library", "usages", "exact", "share"], rows)


def _measured(
    packages: Iterable[Package], folders: Mapping[str, Path]
) -> Iterator[tuple[Package, list[Usage]]]:
    known = [each for each in packages if each.package in folders]
    with ProcessPoolExecutor() as processes:
        found = processes.map(usages_of, [folders[x.package] for x in known])
        yield from zip(known, found, strict=True)


def main() -> None:
    """Download the packages, and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.migrated_usages")
    parser.add_argument("folder", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="list the reasons")
    parser.add_argument("--write", action="store_true", help="write the list anew")
    arguments = parser.parse_args()
    packages = read_packages()
    folders = download(packages, arguments.folder)
    measured = dict(_measured(packages, folders))
    every = [usage for usages in measured.values() for usage in usages]
    print(table(every))
    now = [counted(package, usages) for package, usages in measured.items()]
    for before, after in zip(measured, now, strict=True):
        if before != after:
            print(f"\n{before.package}: {before[2:]} before, {after[2:]} now")
    if arguments.verbose:
        reasons = Counter(usage.reason for usage in every if usage.reason)
        print()
        for reason, count in reasons.most_common():
            print(f"{count:>4}  {reason}")
    if arguments.write:
        write_packages(now)


if __name__ == "__main__":
    main()

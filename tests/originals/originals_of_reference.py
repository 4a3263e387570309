"""The systems whose published tables are reproduced."""

from collections.abc import Iterator

from tests._support.reference_data import reference_data
from tests.originals.comparison import original


@original(
    "hostname-verification",
    package='"Hostname verification backoff schedule",',
    version=lambda: "2021",
    how="its table",
)
def hostname_verification_waits() -> Iterator[float]:
    for row in reference_data("hostname_verification")["rows"][:75]:
        yield row["seconds"]

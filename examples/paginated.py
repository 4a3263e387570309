"""Read all pages of a listing, by a cursor, from a service that fails in between.

Each page has the cursor of the next one, so that the stream continues there: no page is
read twice, and none is left out. The limits of the policy count the failures since the
last page: four pages with a failure each are read with two attempts in a row.

Prints::

    order 1, order 2, order 3, order 4, order 5, order 6, order 7
    7 requests for 4 pages, which continued at 'after-2', 'after-4', 'after-6'
"""

import logging
from collections.abc import Iterator
from typing import NamedTuple

from retrykit import RetryState, retry, streams


class Page(NamedTuple):
    """Some orders, and the cursor of the next page; None after the last one."""

    orders: list[int]
    next: str | None


class Shop:
    """A service with seven orders, two on a page, that fails before each page."""

    def __init__(self) -> None:
        self.requests = 0

    def list_orders(self, cursor: str | None) -> Page:
        """Return the page behind a cursor; None is the first page."""
        self.requests += 1
        if self.requests % 2 == 0:
            msg = "the connection was cut off"
            raise ConnectionError(msg)
        first = 1 if cursor is None else int(cursor.removeprefix("after-")) + 1
        last = min(first + 1, 7)
        following = f"after-{last}" if last < 7 else None
        return Page([*range(first, last + 1)], following)


def behind(last_page: Page, _state: RetryState) -> dict[str, object]:
    """Return the arguments with which the listing continues behind a page."""
    return {"cursor": last_page.next}


@retry(
    on=ConnectionError,
    schedule=["10ms", "20ms"],
    max_attempts=2,
    stream=streams.resume(behind),
)
def list_pages(shop: Shop, cursor: str | None = None) -> Iterator[Page]:
    """Yield all pages behind a cursor."""
    while True:
        page = shop.list_orders(cursor)
        yield page
        if page.next is None:
            return
        cursor = page.next


def main() -> None:
    """Print the orders of all pages, and where the stream continued."""
    # Without the lines that tell each retry.
    logging.getLogger("retrykit").setLevel(logging.ERROR)
    shop = Shop()
    with list_pages(shop) as pages:
        orders = [order for page in pages for order in page.orders]
    print(", ".join(f"order {order}" for order in orders))
    progress = pages.state.stream
    assert progress is not None
    positions = ", ".join(repr(each["cursor"]) for each in progress.positions)
    print(
        f"{shop.requests} requests for {progress.items} pages, "
        f"which continued at {positions}"
    )


if __name__ == "__main__":
    main()

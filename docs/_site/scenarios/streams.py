"""A connection breaks after two rows; the next attempt begins behind them."""

from collections.abc import Iterator

from docs._site.sequences import Sequence
from retrykit import retry, streams

PARTIES = "client", "retrykit", "server"


def main(sequence: Sequence) -> None:
    """Read four rows over a connection that breaks once."""
    breaks = [2]

    def serve(after: int) -> Iterator[str]:
        for row in range(after + 1, 5):
            sequence.clock.advance("10ms")
            yield f"row {row}"
            if row in breaks:
                breaks.remove(row)
                raise ConnectionError

    def behind(last: str, _: object) -> dict[str, int]:
        return {"after": int(last.removeprefix("row "))}

    @retry(stream=streams.resume(behind), on=ConnectionError, schedule=["1s"])
    def rows(after: int = 0) -> Iterator[str]:
        sequence.message("retrykit", "server", f"rows after {after}")
        yield from sequence.items("server", "retrykit", serve(after))

    sequence.message("client", "retrykit", "rows()")
    for _ in sequence.items("retrykit", "client", rows()):
        pass

"""Two runs of the main benchmark, side by side."""

from benchmarks.compare import compare

RUN = """\
## As installed

|                        | hand-written |    retrykit |   tenacity |
|------------------------|--------------|-------------|------------|
| function, success (µs) |  0.187 (1.0) | {call} (3.5) | 25.5 (137) |
| gives up (µs)          |   4.23 (1.0) |             |  108 (25)  |

| client (µs) |         | other         |       bare |   retrykit |  the other |
|-------------|---------|---------------|------------|------------|------------|
| httpx       | success | httpx-retries | 143 (1.00) | {request} (1.32) | 156 (1.09) |

CPython 3.11
"""


def test_a_row_shows_how_many_times_as_much_it_takes():
    old = RUN.format(call="0.650", request="1,890")
    new = RUN.format(call="1.300", request="945")
    assert compare(old, new).splitlines() == [
        "| logs         | row                    | before | after | times |",
        "|--------------|------------------------|--------|-------|-------|",
        "| as installed | function, success (µs) |  0.650 | 1.300 |  2.00 |",
        "| as installed | httpx, success (µs)    |  1,890 |   945 |  0.50 |",
    ]


def test_a_row_that_only_one_run_has_is_left_out():
    old = RUN.format(call="0.650", request="189").replace("function", "method")
    assert "function" not in compare(old, RUN.format(call="1", request="2"))

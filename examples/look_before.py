"""Preview a policy before any call is made: delays, total time, lint warnings.

Prints::

    retry        earliest     average         latest
        1            0.5s        1.0s           1.5s
        2            1.5s        3.0s           4.5s
        3            3.5s        7.0s          10.5s
        4            7.5s       15.0s          22.5s
    stops after retry 4: max_attempts
    max_elapsed alone: stops after retry 5 to 6
    median total wait: 15.0s
    worst case with attempts of 3s: 37.5s
"""

from itertools import accumulate

from retrykit import Policy
from retrykit.analysis.lint import check
from retrykit.analysis.preview import preview
from retrykit.schedules import exponential

POLICY = Policy(
    schedule=exponential(1).cap("1m").jitter(0.5),
    max_attempts=5,
    max_elapsed="1m",
    on=ConnectionError,
)


def main() -> None:
    """Print the table, the limits, a quantile, the worst case, the warnings."""
    projection = preview(POLICY)
    print("retry        earliest     average         latest")
    means = accumulate(row.mean or 0.0 for row in projection.rows)
    for row, mean in zip(projection.rows, means, strict=True):
        earliest, latest = row.total_low, row.total_high
        print(f"{row.retry:>5}  {earliest:13.1f}s  {mean:9.1f}s  {latest:12.1f}s")
    print(projection.end)
    limit = str(projection.limits["max_elapsed"])
    print(f"max_elapsed alone: {limit.partition(':')[0]}")
    if wait := projection.total_wait:
        median = next(each for each in wait.quantiles if each.probability == 0.5)
        print(f"median total wait: {median.value:.1f}s")
    worst = preview(POLICY, attempt="3s").worst_case
    print(f"worst case with attempts of 3s: {worst}s")
    for warning in check(POLICY):
        print(f"{warning.rule}: {warning.fix}")


if __name__ == "__main__":
    main()

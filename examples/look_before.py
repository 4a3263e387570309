"""What a policy will do, told before any call is made under it.

Prints::

    retry  at the soonest  on average  at the latest
        1            0.5s        1.0s           1.5s
        2            1.5s        3.0s           4.5s
        3            3.5s        7.0s          10.5s
        4            7.5s       15.0s          22.5s
    stops after retry 4: max_attempts
    max_elapsed alone: stops after retry 5 to 6
    half of the calls that fail every time wait less than 15.0s
    with attempts of 3s it takes 37.5s at worst
    cap-never-reached: remove .cap(60.0), or allow the 8 attempts it takes
"""

from itertools import accumulate

from retrykit import Policy
from retrykit.analysis.lint import check
from retrykit.analysis.preview import preview
from retrykit.schedules import exponential

POLICY = Policy(schedule=exponential(1).cap("1m").jitter(0.5), on=ConnectionError)


def main() -> None:
    """Print the table, the ends, a quantile, the worst case and a warning."""
    seen = preview(POLICY)
    print("retry  at the soonest  on average  at the latest")
    means = accumulate(row.mean or 0.0 for row in seen.rows)
    for row, mean in zip(seen.rows, means, strict=True):
        soonest, latest = row.total_low, row.total_high
        print(f"{row.retry:>5}  {soonest:13.1f}s  {mean:9.1f}s  {latest:12.1f}s")
    print(seen.end)
    print(f"max_elapsed alone: {str(seen.limits['max_elapsed']).partition(':')[0]}")
    if seen.total_wait:
        median = next(each for each in seen.total_wait.quantiles if each.share == 0.5)
        print(
            f"half of the calls that fail every time wait less than {median.value:.1f}s"
        )
    print(
        f"with attempts of 3s it takes {preview(POLICY, attempt='3s').worst}s at worst"
    )
    for warning in check(POLICY):
        print(f"{warning.rule}: {warning.fix}")


if __name__ == "__main__":
    main()

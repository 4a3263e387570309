"""The schedules of three presets, as tables like those in their documentation.

Nothing is called and nothing sleeps. Retries with the same delay share a row.

Prints::

    "Hostname verification backoff schedule", custom hostnames, 2021
      retry  retry_attempt  in seconds                total
          1              0          60              0:01:00
          2              1          63              0:02:03
          3              2          66              0:03:09
          4              3          69              0:04:18
          5              4          72              0:05:30
          6              5          76              0:06:46
          7              6          80              0:08:06
          8              7          84              0:09:30
          9              8          88              0:10:58
         10              9          93              0:12:31
         11             10         242              0:16:33
         12             11         279              0:21:12
         13             12         321              0:26:33
         14             13         369              0:32:42
         15             14         424              0:39:46
         16             15         488              0:47:54
         17             16         561              0:57:15
         18             17         645              1:08:00
         19             18         742              1:20:22
         20             19         853              1:34:35
         21             20         981              1:50:56
         22             21        1129              2:09:45
         23             22        1298              2:31:23
         24             23        1493              2:56:16
         25             24        1717              3:24:53
         26             25        1975              3:57:48
         27             26        2271              4:35:39
         28             27        2612              5:19:11
         29             28        3003              6:09:14
         30             29        3454              7:06:48
         31             30        3972              8:13:00
         32             31        4568              9:29:08
         33             32        5253             10:56:41
         34             33        6041             12:37:22
         35             34        6948             14:33:10
         36             35        7990             16:46:20
         37             36        9189             19:19:29
         38             37       10567             22:15:36
         39             38       12152       1 day, 1:38:08
         40             39       13975       1 day, 5:31:03
      41-75          40-74       14400      7 days, 1:31:03

    ExponentialBackOff, Google HTTP Client Library for Java
      request#  retry_interval  randomized_interval
             1           0.500  [0.250, 0.750]
             2           0.750  [0.375, 1.125]
             3           1.125  [0.562, 1.688]
             4           1.687  [0.843, 2.531]
             5           2.530  [1.265, 3.795]
             6           3.795  [1.897, 5.693]
             7           5.692  [2.846, 8.538]
             8           8.538  [4.269, 12.807]
             9          12.807  [6.403, 19.211]
            10          19.210  STOP

    "Backoff & Retry Policies", Zizq: t = B + a^E + a * rand(0 to J)
       a  low in s  high in s        low total       high total
       1        16         46            0:00:16            0:00:46
       2        31         91            0:00:47            0:02:17
       3        96        186            0:02:23            0:05:23
      10     10015      10315            7:04:43            7:32:13
      20    160015     160615    8 days, 8:49:26   8 days, 10:34:26
      25    390640     391390  24 days, 22:20:20   25 days, 1:02:50
"""

from datetime import timedelta
from itertools import groupby
from operator import itemgetter

from retrykit import Backoff, Policy, presets
from retrykit.testing import FakeClock

SHOWN = {1, 2, 3, 10, 20, 25}


def hostname_verification() -> None:
    """Print each delay, and the total so far."""
    print('"Hostname verification backoff schedule", custom hostnames, 2021')
    print("  retry  retry_attempt  in seconds                total")
    total = 0.0
    delays = enumerate(presets.hostname_verification().schedule.draw(), 1)
    for delay, group in groupby(delays, itemgetter(1)):
        retries = [retry for retry, _ in group]
        total += delay * len(retries)
        ours, theirs = span(retries), span([retry - 1 for retry in retries])
        passed = str(timedelta(seconds=total))
        print(f"  {ours:>5}  {theirs:>13}  {delay:10.0f}  {passed:>19}")


def google() -> None:
    """Print each interval, and the range of its random delay."""
    print("\nExponentialBackOff, Google HTTP Client Library for Java")
    print("  request#  retry_interval  randomized_interval")
    policy, clock = presets.google(), FakeClock()
    backoff = Backoff(policy, clock)
    for request, low, high in ranges(policy, 9):
        interval = backoff.current_interval
        print(f"  {request:>8}  {interval:14.3f}  [{low:.3f}, {high:.3f}]")
        backoff.next()
    clock.advance(15 * 60 + 1)
    print(f"  {10:>8}  {backoff.current_interval:14.3f}  {backoff.next()!r}")


def zizq() -> None:
    """Print the range of each delay, and of the total so far."""
    print('\n"Backoff & Retry Policies", Zizq: t = B + a^E + a * rand(0 to J)')
    print("   a  low in s  high in s        low total       high total")
    shortest = longest = timedelta()
    for a, low, high in ranges(presets.zizq(), 25):
        shortest += timedelta(seconds=low)
        longest += timedelta(seconds=high)
        if a in SHOWN:
            passed = f"{shortest!s:>17}  {longest!s:>17}"
            print(f"  {a:>2}  {low:8.0f}  {high:9.0f}  {passed}")


def span(numbers: list[int]) -> str:
    """Return the first and the last number as ``"1-9"``."""
    first, last = numbers[0], numbers[-1]
    return f"{first}" if first == last else f"{first}-{last}"


def ranges(policy: Policy, retries: int) -> list[tuple[int, float, float]]:
    """Return the bounds of the first delays of a policy."""
    bounds = policy.schedule.bounds
    return [(n, *b) for n in range(1, retries + 1) if (b := bounds(n))]


def main() -> None:
    """Print the three tables."""
    hostname_verification()
    google()
    zizq()


if __name__ == "__main__":
    main()

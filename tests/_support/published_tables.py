"""Published tables about retries, and how to simulate each of their cells.

``python -m tests._support.published_tables`` prints them beside the simulations, as
docs/simulation_checks.md has them; a name, such as ``layers``, prints one of them. All
take some minutes.
"""

import sys
from pathlib import Path

from retrykit import Policy
from retrykit.budgets import RatioBudget, Throttle, TokenBucket
from retrykit.schedules import constant, decorrelated, exponential, polly_interval
from retrykit.simulate import Clients, Outage, Server, Users, contend, simulate

__all__ = ["AMPLIFICATION", "CLOSED", "CONTENTION", "FAILING", "LATE_LOADS", "LAYERS"]
__all__ += ["LOADS", "METASTABILITY", "PAGE", "PAUSED", "TABLES", "amplify"]
__all__ += ["contended", "documented", "layered", "lines", "load_of_users", "multiple"]
__all__ += ["pause", "recovery"]

PAGE = Path(__file__).parents[2] / "docs" / "simulation_checks.md"


def success_bucket(capacity=10):
    """Return Brooker's bucket: ten successes earn a retry, whose cost never returns.

    M. Brooker, "Fixing retries with token buckets and circuit breakers", 2022.
    """
    return TokenBucket(10 * capacity, cost=10, costs=(), refunds=False)


# 1: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015; the
# figures are of 300 runs of its backoff_simulator.py, ported to Python 3, with their
# 95 % confidence intervals: calls, and time in ms. It raises 2 to the first power for
# the first retry, so that its base of 5 ms is a delay of 10 ms.
FIRST = exponential(0.01).cap(2)
CONTENTION = {
    "no delay": (constant(0), 2420, 4, 2030, 5),
    "exponential": (FIRST, 1856, 7, 63249, 461),
    "equal jitter": (FIRST.equal_jitter(), 813, 1, 6563, 73),
    "full jitter": (FIRST.full_jitter(), 796, 1, 4936, 57),
    "decorrelated": (decorrelated(0.005).cap(2), 1001, 3, 4644, 79),
    "± 20 %, as gRPC": (FIRST.jitter(0.2), 838, 1, 9387, 88),
    "± 50 %, as Google": (FIRST.jitter(0.5), 733, 1, 6494, 101),
    "Polly v8": (polly_interval(0.005).cap(2), 877, 1, 6088, 109),
}


def contended(schedule, runs=100):
    """Return the contention of 100 clients that retry until they succeed."""
    policy = Policy(schedule=schedule, max_attempts=None, on=Exception)
    return contend(policy, runs=runs)


# 2: attempts per call, and the share of the calls that succeed, if each attempt fails
# with the same probability; one process, 100 calls per second, 60,000 calls.
FAILING = (0.01, 0.1, 0.2, 0.3, 0.5, 1)
QUICK = exponential(0.1).cap(20).full_jitter()
SLOW = exponential(1).cap(20).full_jitter()
FOUR = Policy(schedule=constant(0), max_attempts=4)
THREE = FOUR.replace(max_attempts=3)
SRE = RatioBudget(0.1, reserve=0, window=120)
AMPLIFICATION = {
    "4 attempts": (
        FOUR,
        (1.010, 1.111, 1.251, 1.419, 1.874, 4.00),
        (1, 0.9999, 0.9985, 0.9912, 0.937, 0),
    ),
    "0.1 per success": (
        FOUR.replace(budget=success_bucket()),
        (1.010, 1.097, 1.087, 1.075, 1.052, 1.00),
        (1, 0.987, 0.868, 0.749, 0.522, 0),
    ),
    "gRPC's throttle": (
        FOUR.replace(budget=Throttle()),
        (1.010, 1.018, 1.000, 1.000, 1.000, 1.00),
        (1, 0.917, 0.800, 0.700, 0.500, 0),
    ),
    "AWS SDK 2.0": (
        THREE.replace(budget=TokenBucket(costs=())),
        (1.010, 1.110, 1.243, 1.392, 1.199, 1.00),
        (1, 0.999, 0.992, 0.973, 0.596, 0),
    ),
    "AWS SDK 2.1": (
        THREE.replace(budget=TokenBucket(cost=14, costs=())),
        (1.010, 1.110, 1.243, 1.164, 1.071, 1.00),
        (1, 0.999, 0.992, 0.812, 0.531, 0),
    ),
    # Withdrawals count for up to a tenth longer than the window, so 1.290 for 1.297.
    "Finagle": (
        FOUR.replace(budget=RatioBudget(reserve=10)),
        (1.010, 1.111, 1.251, 1.290, 1.290, 1.29),
        (1, 0.9999, 0.9985, 0.906, 0.646, 0),
    ),
    "SRE book, 10 %": (
        THREE.replace(budget=SRE),
        (1.010, 1.099, 1.100, 1.100, 1.100, 1.10),
        (1, 0.989, 0.878, 0.767, 0.546, 0),
    ),
}


def amplify(policy, share, calls=60_000):
    """Return attempts per call and the share of successes."""
    seconds = calls / 100
    result = simulate(
        Clients(policy, processes=1),
        load=[(index + 0.5) / 100 for index in range(calls)],
        outage=Outage(seconds, "error", begin=0, share=share),
        server=Server(100_000, slots=100),
        horizon="10s",
    )
    return result.amplification, result.succeeded / result.calls


# 3: requests per call to the last of several servers, each of which calls the next one
# with retries, while that one fails. 3^5: J. Brooker, "Timeouts, retries, and backoff
# with jitter", Amazon Builders' Library; 4^3: "Addressing Cascading Failures", SRE
# book, 2016. The others are of a run with a share of failures.
LAYERS = {
    "5 layers of 3 attempts": (5, 3, None, 1, 243),
    "3 layers of 4 attempts": (3, 4, None, 1, 64),
    "5 of 3, which know of each other": (5, 3, "marker", 1, 3.00),
    "5 of 3, with 0.1 per success": (5, 3, "bucket", 1, 1.01),
    "5 of 3, half of the attempts fail": (5, 3, None, 0.5, 2.00),
    "... which know of each other": (5, 3, "marker", 0.5, 1.74),
}


class RetriedError(Exception):
    """The error of a server that has retried already."""


def layered(depth, attempts, kind, share):
    """Return requests to the last server per call, and the share of successes."""
    budget = success_bucket() if kind == "bucket" else None
    policy = Policy(
        schedule=constant(0),
        max_attempts=attempts,
        on=Exception,
        give_up_on=RetriedError,
        budget=budget,
        attempt_timeout=30,
    )
    clients = Clients(policy, processes=1)
    chain = [Server(1_000_000, slots=1000), clients] * (depth - 1)
    calls = 5000 if share < 1 else 1000 if budget else 20
    result = simulate(
        clients,
        load=[(index + 0.5) / 50 for index in range(calls)],
        outage=Outage(calls / 50 + 60, "error", begin=0, share=share),
        server=[*chain, Server(1_000_000, slots=1000)],
        errors={"failed_call": RetriedError()} if kind == "marker" else None,
        horizon="10s",
    )
    return result.requests[-1] / result.calls, result.succeeded / result.calls


# 4: seconds from the end of an outage of 10 s, in which the server hangs, until 95 % of
# the attempts succeed; None is not within 470 s. The example of N. Bronson et al.,
# "Metastable Failures in Distributed Systems", HotOS 2021: 300 requests per second, a
# timeout of 1 s, one process. Checked by its authors for one retry at 280 per second.
LOADS = (60, 100, 180, 220, 260)
RETRY_QUICKLY = Policy(schedule=QUICK, max_attempts=4)
METASTABILITY = {
    "no retries": (Policy(max_attempts=1), (2, 4, 13, 24, 58)),
    "1 at once": (Policy(schedule=[0]), (5, 17, None, None, None)),
    "3 at once": (Policy(schedule=[0, 0, 0]), (32, None, None, None, None)),
    "3, full jitter from 1 s": (
        Policy(schedule=SLOW, max_attempts=4),
        (24, None, None, None, None),
    ),
    "0.1 per success": (
        RETRY_QUICKLY.replace(budget=success_bucket()),
        (2, 4, 14, 24, 59),
    ),
    "gRPC's throttle": (RETRY_QUICKLY.replace(budget=Throttle()), (2, 4, 14, 24, 58)),
    "AWS SDK 2.0": (
        Policy(schedule=SLOW, max_attempts=3, budget=TokenBucket(costs=())),
        (2, 5, 14, 25, 60),
    ),
    "AWS SDK 2.1": (
        Policy(schedule=QUICK, max_attempts=3, budget=TokenBucket(cost=14, costs=())),
        (2, 5, 14, 24, 59),
    ),
    "SRE book, 10 %": (
        Policy(schedule=QUICK, max_attempts=3, budget=SRE),
        (3, 6, 20, 43, 199),
    ),
    "Finagle, no reserve": (
        RETRY_QUICKLY.replace(budget=RatioBudget(reserve=0)),
        (3, 7, 22, 69, None),
    ),
    # 91 s for the published 99, as above.
    "Finagle": (
        RETRY_QUICKLY.replace(budget=RatioBudget(reserve=10)),
        (3, 8, 28, 91, None),
    ),
}


def recovery(policy, rate, seed=1, horizon=470):
    """Return the seconds until a server of 300 requests per second recovers."""
    clients = Clients(policy, processes=1)
    settings = {"server": Server(300), "horizon": horizon, "seed": seed}
    return simulate(clients, load=rate / 300, **settings).recovery


def seconds_to_recovery(policy, rate, published, seeds=4):
    """Return the mean of several seeds; None if the first one does not recover."""
    first = recovery(policy, rate)
    if first is None:
        return None
    horizon = max(60, 3 * published) if published else 470
    others = [recovery(policy, rate, seed, horizon) for seed in range(2, seeds + 1)]
    return sum([first, *others]) / seeds if None not in others else None


# 5: the load in a long outage as a multiple of the normal one, of 100 users who think
# for 2 s. M. Brooker, "What is Backoff For?", 2022, by the closed form
# attempts * T / (T + mean delays).
CLOSED = {
    "3 at once": (Policy(schedule=[0, 0, 0]), 3.941),
    "3 after 1 s each": (Policy(schedule=[1, 1, 1]), 1.600),
    "3, full jitter from 1 s": (Policy(schedule=SLOW, max_attempts=4), 1.4545),
    "3 after 1, 2 and 4 s": (Policy(schedule=[1, 2, 4]), 0.8889),
    "9, full jitter from 1 s": (Policy(schedule=SLOW, max_attempts=10), 0.348),
}


def load_of_users(policy, seconds=2000):
    """Return the load as a multiple of 50 calls per second, from 200 s on."""
    outage = Outage(seconds, "error", begin=0)
    result = simulate(policy, load=Users(100), outage=outage, horizon="10s")
    return sum(result.load[200:seconds]) / (seconds - 200) / 50


def multiple(policy, load="10%", seconds=200):
    """Return the load of independent calls as a multiple of the normal one."""
    outage = Outage(seconds, "error", begin=0)
    result = simulate(policy, load=load, outage=outage, horizon="10s")
    return sum(result.load[50:seconds]) / (seconds - 50) / result.normal


# 6: calls that succeed per second, 70 to 160 s after a pause of 1 s. After
# examples/queuing/gc_caused_collapse.py of happy-simulator 0.2.5, where the answer to
# an attempt that has timed out still ends its call; its figures are of a run of it.
LATE_LOADS = {3: (3.0, 2), 4: (4.0, 12), 5: (5.0, 797), 6: (0.0, 3748)}
LATE_LOADS |= {7: (0.0, 4402), 9: (0.0, 5676)}
RETRIES = Policy(schedule=[0.05, 0.05, 0.05])
BUCKET = RETRIES.replace(budget=success_bucket())
PAUSED = {
    "late answers count, pause of 0.60 s": (
        RETRIES,
        {"late_answers": True, "seconds": 0.6},
        7.0,
    ),
    "... 0.65 s": (
        RETRIES,
        {"late_answers": True, "seconds": 0.65},
        0.0,
    ),
    "... and the server drops abandoned requests": (
        RETRIES,
        {"late_answers": True, "drops": "abandoned"},
        7.0,
    ),
    "late answers do not count": (RETRIES, {}, 0.0),
    "... and no pause": (RETRIES, {"seconds": None}, 7.0),
    "... and a pause of 0.45 s": (RETRIES, {"seconds": 0.45}, 7.0),
    "... and a pause of 0.65 s": (RETRIES, {"seconds": 0.65}, 0.0),
    "... and one retry": (Policy(schedule=[0.05]), {}, 0.0),
    "... and no retries": (Policy(max_attempts=1), {}, 7.0),
    "... and 0.1 per success, at most 10": (BUCKET, {}, 7.0),
    "... and 0.1 per success, at most 100": (
        RETRIES.replace(budget=success_bucket(100)),
        {},
        7.0,
    ),
    "... and the server drops abandoned requests, too": (
        RETRIES,
        {"drops": "abandoned"},
        0.0,
    ),
    "... and it drops those that cannot end in time": (
        RETRIES,
        {"drops": "late"},
        7.0,
    ),
    "... and it serves the newest first": (RETRIES, {"order": "newest_first"}, 7.0),
}


# Whether a pause of 0.6 s is survived depends on when in it the calls begin: the
# smallest one that is not takes 0.55 to 0.65 s with late answers, and 0.5 to 0.65 s
# without.
PHASE = 0.75


def pause(policy, rate=7, *, seconds=1.0, late_answers=False, **of_server):
    """Return the calls that succeed per second, and the number of timeouts."""
    result = simulate(
        Clients(policy, timeout="500ms", processes=1),
        load=[(index + PHASE) / rate for index in range(190 * rate)],
        outage=None if seconds is None else Outage(seconds, begin="30s"),
        server=Server(10, **of_server),
        late_answers=late_answers,
        horizon=200 if seconds is None else 170,
    )
    timeouts = result.retries + result.given_up
    return sum(result.goodput[100:190]) / 90, timeouts


def print_contention():
    yield ["", "calls", "ours", "time, s", "ours"]
    for name, (schedule, calls, error, time, width) in CONTENTION.items():
        found = contended(schedule)
        yield [
            name,
            f"{calls} ± {error}",
            f"{found.attempts:.0f} ± {found.attempts_within:.0f}",
            f"{time / 1000:.2f} ± {width / 1000:.2f}",
            f"{found.time:.2f} ± {found.time_within:.2f}",
        ]


def print_amplification():
    yield ["", *(f"{share:.0%}" for share in FAILING)]
    for name, (policy, attempts, succeed) in AMPLIFICATION.items():
        cells = []
        for index, share in enumerate(FAILING):
            found = amplify(policy, share)
            published = f"{attempts[index]:.3f}, {succeed[index]:.3f}"
            cells.append(f"{published} / {found[0]:.3f}, {found[1]:.3f}")
        yield [name, *cells]


def print_layers():
    yield ["", "published", "ours"]
    for name, (depth, attempts, kind, share, published) in LAYERS.items():
        found, _ = layered(depth, attempts, kind, share)
        yield [name, f"{published:.3g}", f"{found:.3g}"]


def print_metastability():
    yield ["", *(f"{load} per s" for load in LOADS)]
    for name, (policy, seconds) in METASTABILITY.items():
        cells = []
        for load, published in zip(LOADS, seconds, strict=True):
            found = seconds_to_recovery(policy, load, published)
            cells.append(
                f"{published or '-'} / {'-' if found is None else f'{found:.0f}'}"
            )
        yield [name, *cells]


def print_closed():
    yield ["", "published", "ours", "ours, independent calls"]
    for name, (policy, published) in CLOSED.items():
        found, independent = load_of_users(policy), multiple(policy)
        yield [name, f"{published:.3f}", f"{found:.3f}", f"{independent:.2f}"]


def print_paused():
    yield ["7 per s unless said", "published", "ours", "published timeouts", "ours"]
    for rate, (published, number) in LATE_LOADS.items():
        found, timeouts = pause(RETRIES, rate, late_answers=True)
        name = f"late answers count, {rate} per s"
        yield [name, f"{published:.1f}", f"{found:.1f}", f"{number}", f"{timeouts}"]
    for name, (policy, settings, published) in PAUSED.items():
        found, timeouts = pause(policy, **settings)
        yield [name, f"{published:.1f}", f"{found:.1f}", "", f"{timeouts}"]


TABLES = {
    "contention": print_contention,
    "amplification": print_amplification,
    "layers": print_layers,
    "metastability": print_metastability,
    "closed": print_closed,
    "paused": print_paused,
}


def lines(name):
    """Return the lines of a table in Markdown."""
    head, *rows = TABLES[name]()
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def documented(name):
    """Return the cells of each row of a table as docs/simulation_checks.md has it.

    A test compares them with the simulations.
    """
    _, _, text = PAGE.read_text("utf-8").partition(f"\n**{name.capitalize()}")
    table = text.partition("\n| ---")[2].partition("\n\n")[0].splitlines()[1:]
    rows = ([each.strip() for each in line.split("|")[1:-1]] for line in table)
    return {row[0]: row[1:] for row in rows}


if __name__ == "__main__":
    for each in sys.argv[1:] or TABLES:
        sys.stdout.write("\n".join([f"{each}\n", *lines(each), "", ""]))
        sys.stdout.flush()

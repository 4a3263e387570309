"""The cells of the table, which differ in one thing from another one or two each."""

from typing import Any

from retrykit.simulate import Outage, Server
from tests.reality.cell import Cell

__all__ = ["CELLS"]

CELLS: dict[str, Cell] = {}


def cell(
    name: str,
    fleet: str | tuple[str, ...],
    load: float,
    *,
    clients: int = 1,
    kind: Any = "hang",
    outage: dict[str, Any] | None = None,
    server: Server | None = None,
    **others: Any,
) -> None:
    every = fleet if isinstance(fleet, tuple) else (fleet,) * clients
    CELLS[name] = Cell(
        name=name,
        fleet=every,
        load=load,
        outage=Outage("10s", kind, begin="5s", **outage or {}),
        server=server or Server(),
        **others,
    )


# Loads.
cell("no retries, 33 %", "no retries", 0.33, horizon=12)
cell("no retries, 60 %", "no retries", 0.6, horizon=25)
cell("1 at once, 20 %", "1 at once", 0.2, horizon=15)
cell("3 at once, 20 %", "3 at once", 0.2, horizon=50)
cell("3 at once, 60 %", "3 at once", 0.6)
cell("3 with full jitter, 33 %", "3 with full jitter", 0.33)
cell("the default, 33 %", "the default", 0.33)

# Kinds of outages.
cell("refused: 3 at once, 60 %", "3 at once", 0.6, kind="refuse", horizon=12)
cell("refused: full jitter, 87 %", "3 with full jitter", 0.87, kind="refuse")
cell("503: 3 at once, 87 %", "3 at once", 0.87, kind="error", horizon=12)
cell("503: full jitter, 87 %", "3 with full jitter", 0.87, kind="error")
cell("503: the default, 87 %", "the default", 0.87, kind="error")
cell("timeout 12 s: 3 at once, 60 %", "3 at once", 0.6, timeout=12.0, horizon=12)

# Queues.
SHORT = Server(queue_bound="500ms")
cell("queue of 0.5 s: 3 at once, 60 %", "3 at once", 0.6, server=SHORT, horizon=12)
cell(
    "queue of 0.5 s: full jitter, 60 %",
    "3 with full jitter",
    0.6,
    server=SHORT,
    loose=True,
    horizon=15,
)
cell("queue of 2 s: 3 at once, 60 %", "3 at once", 0.6, server=Server(queue_bound="2s"))
NEWEST = Server(order="newest_first")
cell("newest first: 3 at once, 60 %", "3 at once", 0.6, server=NEWEST, horizon=15)
cell(
    "newest first: full jitter, 60 %",
    "3 with full jitter",
    0.6,
    server=NEWEST,
    horizon=20,
)
ABANDONED = Server(drops="abandoned")
cell(
    "drops abandoned: 3 at once, 60 %",
    "3 at once",
    0.6,
    server=ABANDONED,
    loose=True,
    horizon=30,
)
cell("drops abandoned: 3 at once, 87 %", "3 at once", 0.87, server=ABANDONED)
cell(
    "10 slots, exponential: no retries, 60 %",
    "no retries",
    0.6,
    server=Server(slots=10, service="exponential"),
    horizon=25,
)

# Fleets of processes, each with a budget of its own.
RATIO, NO_RESERVE = "RatioBudget()", "RatioBudget(0.2, reserve=0)"
for clients, horizon in ((1, 20), (4, 25), (10, 25)):
    processes = "1 process" if clients == 1 else f"{clients} processes"
    cell(f"{RATIO}, {processes}, 33 %", RATIO, 0.33, clients=clients, horizon=horizon)
cell(f"{RATIO}, 10 processes, 60 %", RATIO, 0.6, clients=10)
cell(f"{NO_RESERVE}, 4 processes, 60 %", NO_RESERVE, 0.6, clients=4, horizon=40)
cell(f"{NO_RESERVE}, 10 processes, 33 %", NO_RESERVE, 0.33, clients=10, horizon=15)
for clients, load, horizon in ((1, 0.6, 25), (10, 0.6, 25), (10, 0.73, 35)):
    processes = "1 process" if clients == 1 else f"{clients} processes"
    name = f"FleetBudget(), {processes}, {load:.0%}".replace("%", " %")
    cell(name, "FleetBudget()", load, clients=clients, horizon=horizon)
cell("Throttle(), 10 processes, 60 %", "Throttle()", 0.6, clients=10)
cell("TokenBucket(), 4 processes, 60 %", "TokenBucket()", 0.6, clients=4, horizon=30)
for name, horizon in ((RATIO, 25), (NO_RESERVE, 40), ("Throttle()", 40)):
    cell(
        f"{name}, 100 clients in 1 process, 60 %",
        name,
        0.6,
        clients=100,
        hosts=1,
        horizon=horizon,
    )
cell(
    "3 at once in 2 processes, Throttle() in 8, 60 %",
    ("3 at once",) * 2 + ("Throttle()",) * 8,
    0.6,
)

# Partial outages, slow start, Retry-After.
HALF = {"share": 0.5}
cell(
    "503 for half: 3 at once, 60 %",
    "3 at once",
    0.6,
    kind="error",
    outage=HALF,
    horizon=12,
)
cell("half hang: 3 at once, 60 %", "3 at once", 0.6, outage=HALF, horizon=12)
cell(
    "503 for half: RatioBudget(), 4 processes, 60 %",
    "RatioBudget()",
    0.6,
    clients=4,
    kind="error",
    outage=HALF,
    horizon=12,
)
SLOW = {"slow_start": 10}
cell(
    "slow start of 10 s: no retries, 33 %", "no retries", 0.33, outage=SLOW, horizon=20
)
cell(
    "slow start of 10 s: 503, 3 at once, 60 %",
    "3 at once",
    0.6,
    kind="error",
    outage=SLOW,
)
cell(
    "slow start of 10 s: 503, no retries, 60 %",
    "no retries",
    0.6,
    kind="error",
    outage=SLOW,
    horizon=20,
)
cell(
    "Retry-After of 2 s: 503, 3, 60 %",
    "Retry-After",
    0.6,
    kind="error",
    outage={"retry_after": 2},
    horizon=25,
)
cell(
    "Retry-After of 12 s: 503, 3, 60 %",
    "Retry-After",
    0.6,
    kind="error",
    outage={"retry_after": 12},
    horizon=25,
)

# Breakers, SDKs, connections and hedges.
cell("a breaker in 1 process, 60 %", "a breaker", 0.6)
cell("a breaker in each of 4 processes, 60 %", "a breaker", 0.6, clients=4)
cell(
    "503: a breaker in each of 4 processes, 60 %",
    "a breaker",
    0.6,
    clients=4,
    kind="error",
    horizon=15,
)
cell(
    "1 at once on an SDK with 1 at once, 20 %",
    "1 at once",
    0.2,
    sdk="1 at once",
    horizon=50,
)
cell(
    "503: 1 at once on an SDK with 2 at once, 40 %",
    "1 at once",
    0.4,
    sdk="2 at once",
    kind="error",
    horizon=12,
)
cell("50 connections: 3 at once, 60 %", "3 at once", 0.6, connections=50)
cell("a hedge after 0.2 s, 33 %", "a hedge", 0.33, horizon=30)

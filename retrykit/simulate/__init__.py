"""Simulation of what the clients of a server do to it after an outage.

>>> from retrykit import Policy
>>> from retrykit.simulate import Clients, Outage, Server, simulate
>>> policy = Policy(schedule=[0, 0, 0])
>>> outage = Outage("10s", "error")
>>> print(simulate(policy, load="60%", outage=outage, horizon="20s"))
recovers at once

`simulate` returns a `Simulation`. The `Server`, its `Outage`, the `Clients` and the
load, such as `Users`, are values. With their defaults, one line is enough.
`smallest_change` searches for a change after which the server recovers, and `basin` for
the states from which it does not. `contend` simulates clients that update one row.
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.simulate._basin import Basin, basin
    from retrykit.simulate._changes import Change, smallest_change
    from retrykit.simulate._clients import Clients
    from retrykit.simulate._contention import Contention, WriteConflict, contend
    from retrykit.simulate._failures import ServiceUnavailable
    from retrykit.simulate._load import Users
    from retrykit.simulate._outage import Outage
    from retrykit.simulate._progress import simulation_of
    from retrykit.simulate._results import Simulation
    from retrykit.simulate._server import Server
    from retrykit.simulate._simulate import simulate
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "simulate._basin": "Basin basin",
            "simulate._changes": "Change smallest_change",
            "simulate._clients": "Clients",
            "simulate._contention": "Contention WriteConflict contend",
            "simulate._failures": "ServiceUnavailable",
            "simulate._load": "Users",
            "simulate._outage": "Outage",
            "simulate._progress": "simulation_of",
            "simulate._results": "Simulation",
            "simulate._server": "Server",
            "simulate._simulate": "simulate",
        },
    )

__all__ = ["Basin", "Change", "Clients", "Contention", "Outage", "Server"]
__all__ += ["ServiceUnavailable", "Simulation", "Users", "WriteConflict", "basin"]
__all__ += ["contend", "simulate", "simulation_of", "smallest_change"]

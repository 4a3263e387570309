"""The engines of simulations, all of which give the same result."""

from collections.abc import Sequence
from typing import Any, Literal, final

from retrykit._internal.clocks import sync_clock
from retrykit.simulate._chain import start_chain
from retrykit.simulate._clients import Fleet, Told
from retrykit.simulate._events import SECOND, Events
from retrykit.simulate._layered_fleet import LayeredFleet
from retrykit.simulate._progress import Watcher, run_seconds
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._scene import Scene
from retrykit.simulate._short_cut import (
    ShortCut,
    applies,
    arrays_apply,
    has_many,
    run_arrays,
    run_one_by_one,
)

__all__ = ["Engine", "Run"]

Engine = Literal["events", "one by one", "arrays"]
"""How a simulation is computed.

Event by event; or an attempt at a time, where its end is known when it is sent; or many
attempts at a time, with numpy.
"""


@final
class VirtualClock:
    """The clock that budgets and limits read in a simulation."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def now(self) -> float:
        """Return the virtual time, in seconds."""
        return self._events.now / SECOND

    def sleep(self, delay: float, /) -> None:
        """Do nothing: no code that sleeps is simulated."""


@final
class Run:
    """A run of a simulation, by the fastest engine that applies and pays off.

    Args:
        scene: What is simulated.
        watcher: Is told how it proceeds.
        told: Called with each attempt that has ended; None if nobody listens.

    Attributes:
        recorder: The counts of the requests to the first server.
        behind: The counts for each server behind the first one.
    """

    def __init__(self, scene: Scene, watcher: Watcher, told: Told | None) -> None:
        self._scene, self._watcher, self._told = scene, watcher, told
        self._events = Events(scene.load.rate)
        self.recorder = Recorder(scene.seconds)
        self.behind: Sequence[Recorder] = ()

    def choose(
        self, engine: Engine | None, state: tuple[int, int] | None, since: int | None
    ) -> Engine:
        """Return the engine that `run` tries first with these arguments."""
        whole = self._told is None and state is None and since is None
        scene = self._scene
        if not whole or engine == "events" or not applies(scene):
            return "events"
        many = has_many(scene) if engine is None else engine == "arrays"
        if many and arrays_apply(scene):
            return "arrays"
        return "one by one"

    def run(
        self, engine: Engine | None, state: tuple[int, int] | None, since: int | None
    ) -> None:
        """Run the simulation to its end.

        Args:
            engine: The fastest engine that may be used; None allows any.
            state: The number of abandoned requests in the queue, and of calls that wait
                for their first retry, at the beginning; None if there are none.
            since: A time in nanoseconds; the run ends as soon as attempts succeed again
                after it and nothing is left to do. None runs all seconds.
        """
        chosen = self.choose(engine, state, since)
        with sync_clock.use(VirtualClock(self._events), "a simulation"):
            if chosen == "arrays" and self._counted(run_arrays):
                return
            if chosen != "events" and self._counted(run_one_by_one):
                return
            self._run_events(state, since)

    def _counted(self, run: ShortCut) -> bool:
        """Try a short cut, and return whether it has simulated everything.

        Otherwise, forget what it has counted.
        """
        try:
            if run(self._scene, self.recorder, self._watcher, self._events):
                return True
        except KeyboardInterrupt:
            self.recorder.settle()
            raise
        self.recorder, self._events.now = Recorder(self._scene.seconds), 0
        return False

    def _run_events(self, state: tuple[int, int] | None, since: int | None) -> None:
        """Run the simulation event by event."""
        scene, events, recorder = self._scene, self._events, self.recorder
        common: Any = {
            "seed": scene.seed,
            "late_answers": scene.late_answers,
        }
        of_calls: Any = {"made_by": scene.made_by, "told": self._told}
        fleet: Fleet | LayeredFleet
        if scene.layers:
            fleet = LayeredFleet(
                scene.layers, events, recorder, scene.load, **of_calls, **common
            )
        else:
            fleet = Fleet(
                scene.populations,
                events,
                recorder,
                scene.load,
                **of_calls,
                **common,
            )
        serving, self.behind = start_chain(
            scene.servers,
            scene.between,
            scene.outage,
            events,
            clients=fleet,
            seconds=scene.seconds,
            network=scene.network,
            **common,
        )
        if state is not None and isinstance(fleet, Fleet):
            queue, retries = state
            serving.begin_with(fleet.abandoned(queue))
            fleet.begin_with(retries)
        run_seconds(
            events, recorder, lambda: serving.waiting, self._watcher, since=since
        )

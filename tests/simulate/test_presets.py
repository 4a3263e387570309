"""Every preset is simulated by a fast engine, with the results of the slow one."""

import pytest

from retrykit import presets
from retrykit.simulate import Clients, Outage, Server
from retrykit.simulate._short_cut import applies, arrays_apply
from tests._support.required import installed
from tests._support.simulation_cells import scene_of
from tests._support.thorough import first_are_quick
from tests.simulate.test_engines import counts

POLICIES = {name: getattr(presets, name)() for name in presets.__all__}
# Its tokens are given in the order of events.
WITH_LIMITS = {"aws_adaptive"}


def test_every_preset_takes_the_short_cut_unless_it_has_limits():
    limited = {name for name, policy in POLICIES.items() if policy.admission}
    assert limited == WITH_LIMITS
    for name in POLICIES.keys() - WITH_LIMITS:
        policy = POLICIES[name]
        for kind in ("hang", "refuse", "error"):
            scene = scene_of(policy, kind)
            assert applies(scene), name
            alone = policy.budget is None and installed("numpy")
            assert arrays_apply(scene) == alone, name


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["hang", "refuse", "error"])
@pytest.mark.parametrize("name", first_are_quick(8, POLICIES))
def test_the_engines_have_equal_results_for_a_preset(name, kind):
    clients = Clients(POLICIES[name], processes=4)
    settings = {
        "server": Server(10),
        "load": "90%",
        "outage": Outage("2s", kind, begin=1),
        "network": 0.01,
        "horizon": "10s",
        "seed": len(name),
    }
    expected = counts(clients, "events", **settings)
    for engine in ("one by one", "arrays"):
        assert counts(clients, engine, **settings) == expected

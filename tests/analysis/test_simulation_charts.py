"""Pictures of simulations, checked through the artists of the figure."""

import pytest

from retrykit import ConfigError, Policy
from retrykit.analysis.charts import save
from retrykit.analysis.simulation_charts import basin_figure, load_figure
from retrykit.simulate import Basin, Outage, Server, simulate

IMMEDIATE = Policy(schedule=[0, 0, 0])
RESULT = simulate(IMMEDIATE, load="60%", server=Server(20), horizon="20s")
BASIN = Basin(
    queue=(0, 10, 30),
    pending=(0, 20),
    returns=((True, True, False), (True, False, False)),
    settings={},
)


def lines(axes):
    return {line.get_label(): [*line.get_ydata()] for line in axes.lines}


def test_load_and_goodput_are_multiples_of_the_normal_load():
    upper, lower = load_figure(RESULT).axes
    drawn = lines(upper)
    assert drawn["load"] == [each / 12 for each in RESULT.load]
    assert drawn["goodput"] == [each / 12 for each in RESULT.goodput]
    assert [1.0, 1.0] in drawn.values()
    drawn = lines(lower)
    assert drawn["requests in the queue"] == [*RESULT.queue]
    assert drawn["calls that wait to retry"] == [*RESULT.pending]
    assert upper.get_title(loc="left") == RESULT.verdict


def test_the_outage_is_shaded():
    for axes in load_figure(RESULT).axes:
        [shade] = axes.patches
        assert (shade.get_x(), shade.get_width()) == (10, 10)
    calm = simulate(IMMEDIATE, outage=None, server=Server(20), horizon="10s")
    assert [len(axes.patches) for axes in load_figure(calm).axes] == [0, 0]


def test_the_time_axis_has_readable_durations():
    axes = load_figure(RESULT).axes[1]
    form = axes.xaxis.get_major_formatter()
    labels = [form(mark) for mark in axes.xaxis.get_majorticklocs()]
    assert labels == ["0s", "5s", "10s", "15s", "20s", "25s", "30s", "35s", "40s"]


def test_each_state_of_a_basin_is_a_cell_around_it():
    axes = basin_figure(BASIN).axes[0]
    [mesh] = axes.collections
    assert mesh.get_array().tolist() == [[1, 1, 0], [1, 0, 0]]
    assert axes.get_xlim() == (-5, 40)
    assert axes.get_ylim() == (-10, 30)
    assert not axes.lines


@pytest.mark.parametrize("outage", [None, Outage("1s"), Outage("1s", begin=0)])
def test_the_states_of_a_simulation_begin_just_before_its_outage(outage):
    result = simulate(IMMEDIATE, server=Server(20), horizon="10s", outage=outage)
    path, start = basin_figure(BASIN, result).axes[0].lines
    first = 9 if outage is not None and outage.begin else 0
    assert [*path.get_xdata()] == [*result.queue[first:]]
    assert [*path.get_ydata()] == [*result.pending[first:]]
    assert [*start.get_xdata()] == [result.queue[first]]


def test_equal_pictures_have_equal_bytes(tmp_path):
    for draw in (lambda: load_figure(RESULT), lambda: basin_figure(BASIN, RESULT)):
        paths = [tmp_path / f"{name}.svg" for name in "ab"]
        for path in paths:
            save(draw(), path)
        one, other = (path.read_bytes() for path in paths)
        assert one == other


def test_only_results_are_drawn():
    with pytest.raises(ConfigError, match="simulation must be a Simulation, got 5"):
        load_figure(5)
    with pytest.raises(ConfigError, match="basin must be a Basin, got 5"):
        basin_figure(5)
    with pytest.raises(ConfigError, match="simulation must be a Simulation, got 5"):
        basin_figure(BASIN, 5)

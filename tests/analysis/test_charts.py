"""Charts of policies, checked through the artists of the figure."""

import xml.dom.minidom

import pytest
from matplotlib.figure import Figure

from retrykit import ConfigError, Policy, presets
from retrykit.analysis.charts import figure, save
from retrykit.analysis.preview import preview
from retrykit.schedules._randomness import MAX_DELAY

ZIZQ = {"zizq": presets.zizq()}


def lines(chart):
    """Return the data of each line, high before low."""
    return [list(line.get_ydata()) for line in chart.axes[0].lines]


def test_draws_two_lines_and_the_band_between_them():
    chart = figure(ZIZQ)
    rows = preview(presets.zizq()).rows
    assert isinstance(chart, Figure)
    assert lines(chart) == [[row.high for row in rows], [row.low for row in rows]]
    [band] = chart.axes[0].collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices}
    assert {(row.retry, row.low) for row in rows} <= corners
    assert {(row.retry, row.high) for row in rows} <= corners


def test_draws_cumulative_delays():
    rows = preview(presets.zizq()).rows
    high, low = lines(figure(ZIZQ, cumulative=True))
    assert high == [row.total_high for row in rows]
    assert low == [row.total_low for row in rows]


def test_each_policy_has_its_color_and_its_name():
    chart = figure(ZIZQ | {"google": presets.google()})
    axes = chart.axes[0]
    colors = [line.get_color() for line in axes.lines]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["zizq", "google"]


def test_ticks_are_readable_durations():
    axes = figure(ZIZQ, log=False).axes[0]
    format_of = axes.yaxis.get_major_formatter()
    labels = [format_of(mark) for mark in axes.yaxis.get_majorticklocs()]
    assert labels == ["0s", "1d", "2d", "3d", "4d"]


def test_a_logarithmic_scale_has_ticks_at_units():
    axes = figure(ZIZQ, log=True).axes[0]
    assert axes.get_yscale() == "log"
    assert {60, 3_600, 86_400} <= set(axes.yaxis.get_majorticklocs())


def test_the_scale_depends_on_the_delays():
    def scale(*delays, **settings):
        policy = Policy(schedule=delays)
        return figure({"own": policy}, **settings).axes[0].get_yscale()

    assert figure(ZIZQ).axes[0].get_yscale() == "log"
    assert scale(0, 1, 100) == "linear"
    assert scale(0, 1, 101) == "log"
    assert scale(1, 99, 99, cumulative=True) == "log"
    assert scale(1, 2, log=True) == "log"
    assert scale(1, 101, log=False) == "linear"


NAMES = {
    "$x^{$": "$x^{$",
    "_own": "_own",
    "": "",
    "<b>&--": "<b>&--",
    "one\ntwo\x1b[31m": r"one\ntwo\x1b[31m",
}


def test_a_name_is_shown_verbatim(tmp_path):
    chart = figure(dict.fromkeys(NAMES, Policy()))
    legend = chart.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [*NAMES.values()]
    colors = [line.get_color() for line in legend.get_lines()]
    assert colors == [line.get_color() for line in chart.axes[0].lines[::2]]
    save(chart, tmp_path / "named.svg")
    xml.dom.minidom.parse(str(tmp_path / "named.svg"))  # noqa: S318  trusted


@pytest.mark.parametrize("log", [True, False, None])
@pytest.mark.parametrize(
    "delays", [[MAX_DELAY], [5e-324] * 3, [0, 5e-324, 1, MAX_DELAY]]
)
def test_the_shortest_and_the_longest_delays_are_drawn(delays, log, tmp_path):
    """A warning of matplotlib would be an error in this suite."""
    policy = Policy(schedule=delays)
    for cumulative in (True, False):
        chart = figure({"odd": policy}, log=log, cumulative=cumulative)
        save(chart, tmp_path / "odd.png")
        low, high = chart.axes[0].get_ylim()
        assert low <= min(lines(chart)[0][-1], 1e308) <= high


def test_zero_delays_do_not_break_a_logarithmic_scale(tmp_path):
    free = figure({"at once": Policy(schedule=[0, 0, 0])}, log=True)
    save(free, tmp_path / "at_once.png")
    assert free.axes[0].get_yscale() == "linear"
    jittered = Policy(schedule=Policy().schedule.full_jitter())
    some = figure({"from zero": jittered}, log=True)
    save(some, tmp_path / "from_zero.png")
    assert some.axes[0].get_yscale() == "log"


def test_an_endless_policy_is_drawn_for_twenty_retries():
    endless = {"endless": Policy(max_attempts=None)}
    assert len(lines(figure(endless))[0]) == 20
    assert len(lines(figure(endless, retries=33))[0]) == 33


def test_the_duration_of_attempts_is_added():
    limited = {"limited": Policy(schedule=[10] * 9, max_elapsed=60)}
    assert len(lines(figure(limited))[0]) == 6
    assert len(lines(figure(limited, attempt="10s"))[0]) == 3


@pytest.mark.parametrize("policy", [Policy(schedule=[1]), Policy(max_attempts=1)])
def test_one_retry_is_a_point_and_none_an_empty_chart(policy, tmp_path):
    chart = figure({"short": policy})
    chart.savefig(tmp_path / "short.png")
    markers = {line.get_marker() for line in chart.axes[0].lines}
    assert markers == ({"o"} if preview(policy).rows else {"None"})


def test_no_policy_is_an_empty_chart(tmp_path):
    empty = figure({})
    save(empty, tmp_path / "empty.png")
    assert empty.axes[0].get_legend() is None


def test_the_same_policy_gives_the_same_file(tmp_path):
    for end in ("svg", "SVG", "png"):
        for name in ("one", "two"):
            save(figure(ZIZQ), tmp_path / f"{name}.{end}")
        one, two = (tmp_path / f"{name}.{end}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    assert b"dc:date" not in (tmp_path / "one.SVG").read_bytes()


def test_rejects_anything_but_a_dict_of_policies():
    with pytest.raises(ConfigError, match="policies must be a dict of policies"):
        figure(presets.zizq())
    with pytest.raises(ConfigError, match="policy must be a Policy"):
        figure({"zizq": "zizq"})


def test_no_window_system_is_used():
    import sys

    figure(ZIZQ)
    assert "matplotlib.pyplot" not in sys.modules

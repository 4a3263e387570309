"""``retrykit simulate``: what policies do to a server after an outage."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, get_args

import click
from rich.progress import Progress

from retrykit._cli.modules import find_attribute
from retrykit._cli.options import (
    PolicyText,
    Share,
    duration,
    make_command,
    number_or_text,
)
from retrykit._cli.policies import policy_flags, select_policies
from retrykit._cli.simulation_report import (
    as_csv,
    as_data,
    print_change,
    print_report,
)
from retrykit._cli.terminal import console, show_progress
from retrykit._core.policy import Policy
from retrykit._internal.distribution import installed_by
from retrykit._internal.validation import invalid_setting, reworded
from retrykit.errors import ConfigError
from retrykit.simulate._basin import find_basin
from retrykit.simulate._changes import RUNS, Change, find_change
from retrykit.simulate._clients import Clients
from retrykit.simulate._layered_fleet import has_layers
from retrykit.simulate._load import Load, Users
from retrykit.simulate._outage import Outage, OutageKind
from retrykit.simulate._progress import Watcher, simulation_of
from retrykit.simulate._results import Simulation
from retrykit.simulate._server import Drops, Order, Server, ServiceTimes
from retrykit.simulate._simulate import run

__all__ = ["command"]

# A search simulates about 25 times as many attempts, but most of them are left out.
_QUICK: Final = 250_000
_INTERRUPTED: Final = 130


def _optional(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> float | None:
    """Parse a duration to seconds; None if missing, or "none" where that is allowed."""
    if value is None or (value == "none" and param.opts[0] in _MAY_BE_NONE):
        return None
    return duration(ctx, param, value)


_MAY_BE_NONE: Final = {"--outage", "--retry-after", "--timeout", "--queue-bound"}


def _duration(name: str, default: str | None, text: str) -> Callable[..., Any]:
    """Return an option that is a duration."""
    shown = default is not None
    return click.option(
        name,
        metavar="TIME",
        default=default,
        show_default=shown,
        callback=_optional,
        help=text,
    )


def _choice(name: str, words: object, text: str) -> Callable[..., Any]:
    """Return an option that takes one of several words, by default the first."""
    choices = [str(each).replace("_", "-") for each in get_args(words)]
    return click.option(
        name,
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help=text,
    )


def _parse_errors(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, object] | None:
    """Return the errors that options name, keyed by how an attempt fails, or None."""
    errors: dict[str, object] = {}
    for value in () if ctx.resilient_parsing else values:
        name, _, text = value.partition("=")
        module, _, path = text.partition(":")
        if not (name and module and path):
            rule = "written as timeout=module:Error"
            raise invalid_setting(param.opts[0], rule, value)
        if name not in _RAISED:
            rule = f"of one of {', '.join(_RAISED)}"
            raise invalid_setting(param.opts[0], rule, value, code="unknown-name")
        error = find_attribute(param.opts[0], text, module, path)
        errors[name] = _make_error(param.opts[0], text, error)
    return errors or None


_RAISED: Final = ("timeout", "refused", "unavailable")


def _make_error(option: str, text: str, error: object) -> Exception:
    if isinstance(error, type) and issubclass(error, Exception):
        try:
            return error("simulated")
        except Exception as fault:  # noqa: BLE001  any code may be in it
            rule = "an exception, or a type of one that is made with a text alone"
            suggestion = f"it raised {fault!r}; make one in a module, and name that"
            raise invalid_setting(option, rule, text, suggestion) from None
    if isinstance(error, Exception):
        return error
    raise invalid_setting(option, "an exception, or a type of one", text)


@make_command(
    "simulate",
    "retrykit simulate pyproject.toml:fetch --load 70% --outage 10s",
    "retrykit simulate mypackage.clients:fetch --kind refuse --seeds 8",
    "retrykit simulate requests pyproject.toml:fetch --share 20 --share 80",
    "retrykit simulate zizq --processes 1000 --queue-bound 500ms -o load.png",
    "retrykit simulate pyproject.toml:fetch --load 10% --require-recovery",
)
@click.argument("policies", nargs=-1, type=PolicyText(), metavar="[POLICY]...")
@click.option(
    "--load",
    metavar="SHARE",
    default="70%",
    show_default=True,
    callback=number_or_text,
    help="Share of the server's capacity that calls take, without an outage.",
)
@click.option(
    "--users",
    metavar="N",
    type=click.IntRange(min=1),
    help="Instead of --load: users who wait for the end of a call.",
)
@_duration("--think", "2s", "Mean time between two calls of one of the users.")
@_duration("--outage", "10s", "How long the outage lasts, or none.")
@_choice("--kind", OutageKind, "What the server does in the outage.")
@click.option(
    "--failing",
    metavar="SHARE",
    type=Share(0, 1, min_open=True),
    default="100%",
    show_default=True,
    help="Share of the requests that fail in it.",
)
@_duration("--slow-start", "0s", "How long the server is slower after it.")
@_duration("--retry-after", None, "What the header of a 503 asks for.")
@click.option(
    "--share",
    "shares",
    metavar="SHARE",
    type=Share(0, min_open=True),
    multiple=True,
    help="Weight of the clients of each POLICY, in their order.",
)
@click.option(
    "--processes",
    metavar="N",
    type=int,
    default=100,
    show_default=True,
    help="Processes of each POLICY, each with a budget of its own.",
)
@_duration(
    "--timeout",
    None,
    "How long a client waits for an answer; by default 1s, or as the policy says.",
)
@click.option(
    "--capacity",
    metavar="N",
    type=float,
    default=100.0,
    show_default=True,
    help="Requests per second that the server serves.",
)
@click.option(
    "--slots",
    metavar="N",
    type=int,
    default=1,
    show_default=True,
    help="Requests that it serves at once.",
)
@_choice("--service", ServiceTimes, "How the times to serve them are distributed.")
@_duration("--queue-bound", None, "Work that its queue holds; unlimited by default.")
@_choice("--order", Order, "Order in which requests are served.")
@_choice("--drops", Drops, "Requests in the queue that it does not serve.")
@_duration("--network", "1ms", "Time from a client to the server.")
@click.option(
    "--late-answers",
    is_flag=True,
    help="The answer to an attempt that has timed out ends its call.",
)
@click.option(
    "--raises",
    "errors",
    metavar="NAME=ERROR",
    multiple=True,
    callback=_parse_errors,
    help="What the client raises, such as timeout=httpx:ReadTimeout; the others are"
    " refused and unavailable.",
)
@_duration("--horizon", "5m", "How long to watch the time after the outage.")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of all random draws.",
)
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Simulate with N seeds, from --seed on.",
)
@click.option(
    "--suggest/--no-suggest",
    default=None,
    help="Search for the smallest change that lets the server recover; by default, if"
    " it does not and the search is short.",
)
@click.option(
    "--require-recovery",
    is_flag=True,
    help="Exit with code 1 unless the server recovers with each seed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "wants_csv", is_flag=True, help="Print CSV.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw load and goodput to a .svg or .png file.",
)
@click.option(
    "--basin",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw from which states the load does not come back by itself.",
)
@policy_flags
def command(
    policies: tuple[str, ...],
    seed: int,
    seeds: int,
    suggest: bool | None,
    require_recovery: bool,
    **options: Any,
) -> int:
    """Simulate what policies do to a server after an outage.

    Clients with the policies share the load of one server, which fails for some time.
    The report says whether the server recovers, and how high the load becomes. If the
    server does not recover, a search can find the smallest change that lets it recover.
    Everything happens in virtual time.

    The exit code is 0 even if the server does not recover; --require-recovery makes it
    1. After Ctrl-C, the results so far are printed, and the exit code is 130.
    """
    _check_outputs(options)
    selected = select_policies(policies, options)
    with _options_named(users=options["users"] is not None):
        settings = _settings([*selected.values()], options)
        _check_basin(settings["policy"], options["basin"])
        results, interrupted = _simulate(settings, seed, seeds)
    if not results:
        return _INTERRUPTED
    failed = any(each.outcome not in {"recovers", "no outage"} for each in results)
    text = not (options["as_json"] or options["wants_csv"])
    if text:
        print_report(console(), [*selected], results)
    change = None
    if failed and not interrupted and settings["outage"] is not None:
        short = text and results[0].attempts <= _QUICK
        searched = short if suggest is None else suggest
        if searched:
            change, interrupted = _search(settings, seed)
        if text and not interrupted:
            print_change(console(), change, searched=searched)
    if options["as_json"]:
        click.echo(json.dumps(as_data(results, change), indent=2))
    elif options["wants_csv"]:
        click.echo(as_csv(results), nl=False)
    interrupted = _draw(settings, results[0], seed, options) or interrupted
    if interrupted:
        return _INTERRUPTED
    return 1 if require_recovery and failed else 0


def _check_outputs(options: Mapping[str, Any]) -> None:
    """Reject invalid outputs before a simulation that may take minutes."""
    if options["as_json"] and options["wants_csv"]:
        msg = "--json and --csv cannot be used together."
        raise click.UsageError(msg, click.get_current_context())
    for name in ("--output", "--basin"):
        file = options[name.removeprefix("--")]
        if file is None:
            continue
        if file.suffix.lower() not in _ENDS:
            raise invalid_setting(name, "a .svg or .png file", str(file))
        if not file.parent.is_dir():
            raise invalid_setting(name, "a file in a folder that exists", str(file))
        try:
            import retrykit.analysis.simulation_charts  # noqa: F401, PLC0415  slow
        except ModuleNotFoundError as error:
            msg = f"{file} needs {error.name}; {installed_by('plot')}"
            raise ConfigError(msg, "not-installed") from error


def _settings(policies: Sequence[Policy], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `simulate` except *seed* and *progress*."""
    shares = options["shares"] or (1.0,) * len(policies)
    if len(shares) != len(policies):
        rule = f"given once for each of {len(policies)} policies"
        raise invalid_setting("--share", rule, [*shares], code="wrong-arguments")
    load: Load = options["load"]
    if options["users"] is not None:
        load = Users(options["users"], options["think"])
    outage = None
    if options["outage"] is not None:
        outage = Outage(
            options["outage"],
            options["kind"],
            share=options["failing"],
            slow_start=options["slow_start"],
            retry_after=options["retry_after"],
        )
    return {
        "policy": [
            Clients(
                policy,
                share=share,
                processes=options["processes"],
                timeout=options["timeout"],
            )
            for policy, share in zip(policies, shares, strict=True)
        ],
        "load": load,
        "outage": outage,
        "server": Server(
            options["capacity"],
            slots=options["slots"],
            service=options["service"],
            queue_bound=options["queue_bound"],
            order=options["order"].replace("-", "_"),
            drops=options["drops"],
        ),
        "network": options["network"],
        "late_answers": options["late_answers"],
        "horizon": options["horizon"],
        "errors": options["errors"],
    }


def _check_basin(clients: Sequence[Clients], file: Path | None) -> None:
    """Raise an error if a basin is wanted for clients that have no basin."""
    if file is not None and any(map(has_layers, clients)):
        rule = "left out for a policy with limits or a hedge"
        suggestion = "its state is more than a queue and calls that wait"
        raise invalid_setting("--basin", rule, str(file), suggestion, code="not-here")


@contextmanager
def _options_named(*, users: bool) -> Iterator[None]:
    """Name options in errors, in place of the parameters of Python functions."""
    try:
        yield
    except ConfigError as error:
        name, must, rest = error.message.partition(" must be ")
        option = _OPTIONS.get(name, name)
        if users and name == "load":
            option = "--users"
        text = f"{option}{must}{rest}"
        for python, typed in _ADVICE.items():
            text = text.replace(python, typed)
        raise reworded(error, text) from error


_OPTIONS: Final = {
    "capacity": "--capacity",
    "duration": "--outage",
    "horizon": "--horizon",
    "load": "--load",
    "network": "--network",
    "number": "--users",
    "processes": "--processes",
    "queue_bound": "--queue-bound",
    "retry_after": "--retry-after",
    "seed": "--seed",
    "share": "--share",
    "slots": "--slots",
    "slow_start": "--slow-start",
    "think": "--think",
    "timeout": "--timeout",
}
"""The options, keyed by the parameter of `simulate` or its arguments that they set."""

_ADVICE: Final = {
    "kind='error'": "--kind error",
    "where kind is": "where --kind is",
    "simulate(errors=...)": "--raises timeout=module:Error",
}


class _Watcher(Watcher):
    """A watcher that warns on standard error."""

    def warn(self, text: str) -> None:
        """Print a warning."""
        click.echo(f"retrykit: {text}", err=True)


def _simulate(
    settings: Mapping[str, Any], first: int, seeds: int
) -> tuple[list[Simulation], bool]:
    """Simulate; return the results, and whether the user interrupted the run."""
    results: list[Simulation] = []
    with show_progress("simulating") as move:
        for index in range(seeds):

            def tell(done: int, of: int, before: int = index) -> None:
                move(before * of + done, seeds * of)

            # One warning for all seeds.
            watcher = _Watcher(tell, runs=0 if index else seeds)
            try:
                seed = first + index
                results.append(run(**settings, seed=seed, watcher=watcher))
            except KeyboardInterrupt as error:
                part = simulation_of(error)
                return [*results, *([] if part is None else [part])], True
    return results, False


def _search(settings: Mapping[str, Any], seed: int) -> tuple[Change | None, bool]:
    """Return the smallest change, or None, and whether the search was interrupted."""
    out = console(stderr=True)
    with Progress(console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("searching", total=None)

        def tell(words: str) -> None:
            bar.update(task, description=f"searching: {words}")

        try:
            watcher = _Watcher(runs=RUNS, name="this search")
            found = find_change(**settings, seed=seed, progress=tell, watcher=watcher)
        except KeyboardInterrupt:
            return None, True
    return found, False


_ENDS: Final = {".svg", ".png"}


def _draw(
    settings: Mapping[str, Any],
    result: Simulation,
    seed: int,
    options: Mapping[str, Any],
) -> bool:
    """Draw the requested pictures; return whether that was interrupted."""
    if options["output"] is not None:
        _save_load(result, options["output"])
    if options["basin"] is None or result.outcome == "interrupted":
        return False
    return _save_basin(settings, result, seed, options["basin"])


def _save_load(result: Simulation, output: Path) -> None:
    from retrykit.analysis import charts, simulation_charts  # noqa: PLC0415  slow

    charts.save(simulation_charts.load_figure(result), output)


def _save_basin(
    settings: Mapping[str, Any], result: Simulation, seed: int, output: Path
) -> bool:
    """Draw the basin of no return; return whether that was interrupted."""
    from retrykit.analysis import charts, simulation_charts  # noqa: PLC0415  slow

    wanted = {k: v for k, v in settings.items() if k not in {"outage", "horizon"}}
    try:
        with show_progress("basin") as move:
            found = find_basin(**wanted, seed=seed, progress=move, watcher=_Watcher)
    except KeyboardInterrupt:
        return True
    charts.save(simulation_charts.basin_figure(found, result), output)
    return False

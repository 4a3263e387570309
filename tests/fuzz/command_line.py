"""Target: the command line, with untrusted files and arguments.

No argument names code, as that would be imported on purpose.
"""

import contextlib
import io
import os
import sys
import unicodedata
from pathlib import Path

from retrykit._cli.program import run
from retrykit.config._preset_names import BUILT_IN
from retrykit.errors import ConfigError
from tests.fuzz.names import preset
from tests.fuzz.policies import policy_file
from tests.fuzz.schedules import duration, expression
from tests.fuzz.service_configs import service_config
from tests.fuzz.target import Target
from tests.fuzz.values import as_json, maybe, mutated, text

__all__ = ["TARGETS"]

_COMMANDS = ("show", "compare", "convert", "lint", "chart")
_COUNTS = ("0", "1", "2", "10", "1000", "100000", "unlimited", "-1", "1e9", "9" * 400)
_FLAGS = {
    "--schedule": expression,
    "--max-attempts": lambda random: random.choice(_COUNTS),
    "--max-elapsed": lambda random: random.choice(["unlimited", duration(random)]),
    "--deadline": lambda random: random.choice(["stop", "clip", "overshoot", "x"]),
    "--default-retry-limit": lambda random: random.choice(_COUNTS),
    "--env": lambda random: random.choice(["APP", "A_", text(random)]),
    "--attempt": lambda random: random.choice(["5", "0s", duration(random)]),
    "--retries": lambda random: random.choice(["1", "3", "100", "1000", "0"]),
}
_SAMPLED = {
    "--samples": lambda random: random.choice(["0", "1", "20", "2000", "9" * 30]),
}
_OWN_FLAGS = {
    "show": _SAMPLED
    | {
        "--start": lambda random: random.choice(
            ["2026-01-31T09:00", "9999-12-31", "0001-01-01T00:00+14:00", text(random)]
        ),
        "--columns": lambda random: random.choice(["hours", "at", "hours,x"]),
    },
    "compare": _SAMPLED,
    "convert": {
        "--name": text,
        "--method": lambda random: random.choice(["shop.Cart/Add", text(random)]),
    },
    "lint": {
        "--calls": lambda random: random.choice(["1", "10", "0"]),
        "--lifetime": duration,
    },
    "chart": {"--output": lambda _: "page.html"},
}
_SWITCHES = {
    "show": ["--json", "--csv"],
    "compare": [],
    "convert": [],
    "lint": ["--json"],
    "chart": ["--cumulative", "--log"],
}
_FILES = ("file.json", "file.toml", "grpc.json")


def _command(random):
    """Return the arguments of a command, and the files that it may read."""
    file, content, name = policy_file(random)
    files = {file: content, "grpc.json": as_json(service_config(random)).encode()}
    command = random.choice(_COMMANDS)
    policies = [
        _policy(random, file, name) for _ in range(2 if command == "compare" else 1)
    ]
    if command != "compare" and maybe(random, 0.1):
        policies = []
    flags = _FLAGS | _OWN_FLAGS[command]
    if command == "lint":
        flags = {key: x for key, x in flags.items() if key != "--retries"}
    chosen = random.sample([*flags], random.choice([0, 0, 1, 1, 2, 3]))
    args = [command, *policies]
    if command == "convert":
        args += ["--to", random.choice(["toml", "json", "python", "grpc"])]
    for flag in chosen:
        string = flags[flag](random)
        string = mutated(random, string) if maybe(random, 0.1) else string
        args.append(f"{flag}={string}")
    args += [switch for switch in _SWITCHES[command] if maybe(random, 0.2)]
    return [_argument(each) for each in args], files


def _argument(string):
    """Return a string as an operating system passes it to a program."""
    string = string.replace("\0", "").encode("utf-8", "surrogatepass")
    return string.decode("utf-8", "surrogateescape")


def _policy(random, file, name):
    if maybe(random, 0.25):
        # Not any other name, as it could be that of a module.
        name, colon, parameters = preset(random).partition(":")
        return f"{name if name in BUILT_IN else 'zizq'}{colon}{parameters}"
    if maybe(random, 0.05):
        return f"grpc.json:{random.choice(['shop.Cart/Add', name])}"
    return f"{file}:{name}" if name and maybe(random, 0.9) else file


def _run(given):
    args, files = given
    for file in _FILES:
        Path(file).unlink(missing_ok=True)
    for file, content in files.items():
        Path(file).write_bytes(content)
    os.environ["COLUMNS"] = "80"
    # As in a new process: any character may be written.
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(args)
        sys.stdout.flush()
        sys.stderr.flush()
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]
    exact = args[0] == "convert" or "--json" in args
    return _checked(code, *printed, lint=args[0] == "lint", exact=exact)


def _checked(code, out, err, *, lint, exact):
    assert code in {0, 1, 2}, code
    assert "--debug shows where" not in err, err
    # JSON and CSV have the characters of names unescaped, except control characters.
    control_characters = {
        letter for letter in err if _is_control(letter) or _is_override(letter)
    }
    control_characters |= {letter for letter in out if _is_control(letter)}
    control_characters |= {
        letter for letter in out if _is_override(letter) and not exact
    }
    assert not control_characters, f"prints {control_characters}"
    if code == 2 and not (lint and out):
        assert err.startswith("retrykit: "), err
        assert err.count("\n") == 1, err
        raise ConfigError(err)
    assert not err, err
    return out


def _is_control(letter):
    """Return whether a character controls a terminal."""
    return letter != "\n" and unicodedata.category(letter) in {"Cc", "Zl", "Zp"}


def _is_override(letter):
    """Return whether a character changes the direction of the text after it."""
    return unicodedata.bidirectional(letter) in _OVERRIDES


_OVERRIDES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}

TARGETS = (Target("command-line", 12, _command, _run),)

"""Targets: policies as data, in files and in environment variables."""

import json
import tomllib
from itertools import islice
from pathlib import Path

from retrykit import ConfigError, GiveUp, Policy, state_of
from retrykit._cli.summary import summarize
from retrykit._core.limits import check_limits
from retrykit.analysis.lint import check
from retrykit.analysis.preview import preview
from retrykit.config._files import policy_names
from retrykit.config.grpc_service_config import to_service_config
from retrykit.config.rendering import to_python, to_toml, toml_value
from retrykit.testing import virtual_time
from tests.fuzz.names import exception_type, hint, preset
from tests.fuzz.schedules import duration, expression, schedule_data
from tests.fuzz.target import Target
from tests.fuzz.values import altered, as_json, maybe, mutated, number, text

__all__ = ["TARGETS", "check_policy", "policy_data", "policy_file"]


def _count(random):
    kinds = [1, 2, 3, 5, 25, 1000, 10**6, 10**12]
    return random.choice(kinds) if maybe(random, 0.97) else number(random)


def _limit(random):
    return random.choice(["unlimited", None, 0, 1, 0.5, 1e300, duration(random)])


def _types(random):
    names = [exception_type(random) for _ in range(random.randint(1, 3))]
    return names if maybe(random, 0.5) else names[0]


def _rules(random):
    return [
        {"on": _types(random)}
        | ({"schedule": schedule_data(random)} if maybe(random, 0.7) else {})
        | ({"max_attempts": _count(random)} if maybe(random, 0.5) else {})
        | ({"hint": hint(random)} if maybe(random, 0.3) else {})
        for _ in range(random.randint(0, 3))
    ]


def _budget(random):
    kind = random.choice(["token_bucket", "throttle", "ratio_budget", "fleet_budget"])
    settings = {
        "token_bucket": {"capacity": _count(random), "cost": 5, "reward": 0},
        "throttle": {"max_tokens": _count(random), "token_ratio": 0.1},
        "ratio_budget": {"ratio": 0.2, "reserve": 10, "window": duration(random)},
        "fleet_budget": {"ratio": 0.2, "capacity": 5, "recent": duration(random)},
    }[kind]
    given = {key: x for key, x in settings.items() if maybe(random, 0.5)}
    if kind == "token_bucket" and maybe(random, 0.3):
        given["costs"] = {exception_type(random): random.randint(0, 20)}
    if maybe(random, 0.2):
        given["scope"] = random.choice(["process", "host:a", "key:b"])
    return {"kind": kind} | given


_SETTINGS = {
    "schedule": schedule_data,
    "max_attempts": _count,
    "max_elapsed": _limit,
    "limits": lambda random: random.choice(["any", "all"]),
    "deadline": lambda random: random.choice(["stop", "clip", "overshoot"]),
    "on": _types,
    "give_up_on": _types,
    "exception_groups": lambda random: random.choice(["all", "any", "whole"]),
    "rules": _rules,
    "hint": hint,
    "hint_cap": _limit,
    "on_long_hint": lambda random: random.choice(
        ["honor", "clip", "ignore", "give_up"]
    ),
    "hint_jitter": lambda random: random.choice([0, 0.1, 1, 2, "0.1"]),
    "budget": _budget,
    "attempt_timeout": lambda random: random.choice(
        [1, "5s", {"argument": "timeout", "seconds": duration(random)}]
    ),
    "nested": lambda random: random.choice(["respect", "retry", "raise"]),
    "raises": lambda random: random.choice(["last", "retry_error", "group"]),
    "max_failures": lambda random: random.choice([2, 3, 100, 10**9]),
    "seed": lambda random: random.choice([0, 7, 2**53, 10**400]),
    "name": lambda random: text(random) or "fetch",
}


def policy_data(random):
    """Return a policy as plain data; some are altered."""
    names = random.sample([*_SETTINGS], random.randint(0, 5))
    data = {name: _SETTINGS[name](random) for name in names}
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        data = altered(random, data)
    return data


def policy_file(random):
    """Return the name and content of a file, and the name of a policy in it."""
    names = [text(random) if maybe(random, 0.3) else "fetch", "base", "other"]
    policies = {name: policy_data(random) for name in names[: random.randint(1, 3)]}
    for own in policies.values():
        if isinstance(own, dict) and maybe(random, 0.3):
            own["extends"] = random.choice([*names, preset(random)])
    name = random.choice(names) if maybe(random, 0.3) else names[0]
    data = {"policies": policies}
    if maybe(random, 0.3):
        data = {"tool": {"retrykit": data}}
    if maybe(random, 0.1):
        data = altered(random, data)
    suffix, written = ".json", as_json(data)
    if maybe(random, 0.5):
        suffix, written = ".toml", _toml(data)
        if maybe(random, 0.1):
            raw = random.choice(["0x" + "f" * 4000, "1979-05-27", "nan", "{}", "0b1"])
            written += f"\n[policies.raw]\n{random.choice([*_SETTINGS])} = {raw}"
            name = "raw"
    if maybe(random, 0.15):
        written = mutated(random, written)
    content = written.encode("utf-8", "surrogatepass")
    if maybe(random, 0.03):
        content = (
            random.choice([b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b"\x80"]) + content
        )
    if maybe(random, 0.01):
        opening = random.choice([b"[", b'{"a":', b"a=[", b"[a."]) * 10**4
        content = opening if maybe(random, 0.5) else content + opening
    return f"file{suffix}", content, name


def _toml(data):
    """Return a TOML document; it is invalid if TOML has no form for the data."""
    lines = []
    if not isinstance(data, dict):
        return as_json(data)
    for name, tables in data.items():
        if not isinstance(tables, dict):
            lines.append(f"{_key(name)} = {as_json(tables)}")
            continue
        for key, table in tables.items():
            try:
                lines.append(f"{_key(name)}.{_key(key)} = {toml_value(table)}")
            except (RecursionError, TypeError, ValueError):
                lines.append(f"[{_key(name)}.{_key(key)}]")
    return "\n".join(lines)


def _key(name):
    return as_json(str(name))


def _read_file(given):
    file, content, name = given
    path = Path(file)
    path.write_bytes(content)
    names = policy_names(path)
    if name not in names and names:
        name = names[0]
    return Policy.from_toml(path, name)


_VARIABLES = {
    "SCHEDULE": expression,
    "MAX_ATTEMPTS": lambda random: str(random.choice([1, 5, 10**12, "unlimited"])),
    "MAX_ELAPSED": duration,
    "LIMITS": lambda random: random.choice(["any", "all"]),
    "DEADLINE": lambda random: random.choice(["stop", "clip"]),
    "ON": lambda random: ", ".join(exception_type(random) for _ in range(2)),
    "GIVE_UP_ON": exception_type,
    "EXCEPTION_GROUPS": lambda random: random.choice(["any", "whole"]),
    "HINT": hint,
    "HINT_CAP": duration,
    "ON_LONG_HINT": lambda random: random.choice(["clip", "honor"]),
    "ATTEMPT_TIMEOUT": duration,
    "NESTED": lambda random: random.choice(["retry", "raise"]),
    "RAISES": lambda random: random.choice(["group", "last"]),
    "MAX_FAILURES": lambda random: str(random.randint(0, 100)),
    "SEED": lambda random: random.choice(["0", "7", "9" * 4301]),
    "NAME": text,
    "EXTENDS": preset,
    "RETRY_LIMIT": lambda random: str(random.choice([0, 3, 25, 10**30])),
    "BACKOFF_BASE": lambda random: random.choice(["500", "15s", duration(random)]),
    "BACKOFF_EXPONENT": lambda random: random.choice(["4", "1.5", "1e308", "nan"]),
    "BACKOFF_JITTER": lambda random: random.choice(["1000", "30s"]),
}


def variables(random):
    """Return a prefix, and environment variables as `os.environ` has them."""
    prefix = random.choice(["APP", "ZIZQ_DEFAULT", "APP_", "A"])
    names = random.sample([*_VARIABLES], random.randint(0, 4))
    environ = {"PATH": "/usr/bin", "APPLE": "x"}
    for name in names:
        string = _VARIABLES[name](random)
        string = mutated(random, string) if maybe(random, 0.2) else string
        key = mutated(random, name) if maybe(random, 0.05) else name
        # Bytes that are not UTF-8 become lone surrogates; there are no null bytes.
        string = string.encode(
            "utf-8", "surrogateescape" if _escaped(string) else "replace"
        )
        string += b"\xff" if maybe(random, 0.02) else b""
        string = string.decode("utf-8", "surrogateescape").replace("\0", "")
        environ[f"{prefix.removesuffix('_')}_{key}"] = string
    return text(random) if maybe(random, 0.02) else prefix, environ


def _escaped(string):
    try:
        string.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _read_variables(given):
    prefix, environ = given
    return Policy.from_env(prefix, environ=environ)


def check_policy(policy, random):
    """Check the serialized forms of a policy, its preview, and a call under it."""
    assert repr(policy)
    try:
        check_limits(policy)
    except ConfigError:
        # Variables may leave no retry: it is logged, and an error everywhere else.
        return
    data = policy.to_dict()
    assert Policy.from_dict(data).to_dict() == data, "to_dict reads as another"
    assert Policy.from_dict(json.loads(json.dumps(data))).to_dict() == data
    if policy.budget is not None:
        assert policy.budget.balance >= 0
        policy.budget.withdraw(OSError("busy"))
    kind = random.randrange(12)
    if kind < 4:
        _CHECKS[kind](policy)


def _check_source(policy):
    compile(to_python("fetch", policy), "policy", "exec")
    read = tomllib.loads(to_toml("a.b", policy))["tool"]["retrykit"]["policies"]["a.b"]
    assert Policy.from_dict(read).to_dict() == policy.to_dict()


def _check_service_config(policy):
    try:
        to_service_config(policy, "shop.Cart/Add")
    except ConfigError:
        return


def _check_preview(policy):
    seen = preview(policy, retries=20, samples=5)
    assert all(0 <= row.low <= row.high for row in seen.rows), seen.rows
    assert all(row.total_low <= row.total_high for row in seen.rows), seen.rows
    assert [*summarize(seen)]
    assert all(found.reason for found in islice(check(policy), 20))


def _check_call(policy):
    """Call a function that fails until the call gives up, with the function's error."""
    policy = policy.replace(attempt_timeout=None, raises="last")
    calls = []

    def fail():
        calls.append(None)
        if len(calls) == 3:
            raise GiveUp
        raise OSError("busy")

    with virtual_time():
        try:
            policy.call(fail)
        except (OSError, GiveUp) as error:
            state = state_of(error)
    assert state.describe()
    assert json.loads(json.dumps(state.to_dict()))


_CHECKS = (_check_source, _check_service_config, _check_preview, _check_call)


TARGETS = (
    Target("policy-data", 120, policy_data, Policy.from_dict, check_policy),
    Target("policy-files", 70, policy_file, _read_file, check_policy),
    Target("environment", 70, variables, _read_variables, check_policy),
)

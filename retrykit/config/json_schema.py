"""The JSON Schema of policies, made from their settings and a file of definitions."""

import json
from importlib.resources import files
from typing import Any

from retrykit._core.policy import Policy
from retrykit._core.serialization import setting_to_data
from retrykit._core.settings import SETTINGS, Setting

__all__ = ["policy_schema"]


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a file of policies.

    It also describes ``[tool.retrykit]`` in pyproject.toml. Its definition ``policy``
    is a single policy, as `Policy.from_dict` reads it. The schema's own description
    lists the rules that only the loader can check.

    >>> schema = policy_schema()
    >>> schema["$id"], schema["required"]
    ('urn:retrykit:policy', ['policies'])
    >>> schema["$defs"]["policy"]["properties"]["max_attempts"]["default"]
    5
    """
    text = files("retrykit.config").joinpath("definitions.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    settings = {
        name: _describe(name, setting)
        for name, setting in SETTINGS.items()
        if setting.form != "code"
    }
    own = {name: {"$ref": f"#/$defs/policy/properties/{name}"} for name in settings}
    schema["$defs"]["policy"]["properties"] |= settings
    schema["$defs"]["named_policy"]["properties"] |= own
    return schema


def _describe(name: str, setting: Setting) -> dict[str, Any]:
    """Return the schema of a setting."""
    described: dict[str, Any] = {"description": setting.sentence}
    # No name in a file stands for the errors that are retried by default.
    if name != "on":
        described["default"] = setting_to_data(name, getattr(Policy, name))
    value = _schema_of_value(setting)
    if setting.none:
        none = {"$ref": "#/$defs/unlimited"}
        value = {"anyOf": [value, {"type": "null"} if setting.none == "null" else none]}
    return described | value


def _schema_of_value(setting: Setting) -> dict[str, Any]:
    least, most = setting.bounds
    match setting.form:
        case "choice":
            return {"enum": [*setting.options]}
        case "flag":
            return {"type": "boolean"}
        case "count":
            return {"type": "integer", "minimum": least, "maximum": most}
        case "number":
            return {"type": "number", "minimum": least, "maximum": most}
        case "text":
            return {"type": "string", "pattern": r"\S"}
    return {"$ref": f"#/$defs/{setting.form}"}

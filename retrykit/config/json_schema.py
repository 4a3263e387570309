"""The JSON Schema of policies: the file ``policy.schema.json`` beside this module."""

import json
from importlib.resources import files
from typing import Any

__all__ = ["policy_schema"]


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a file of policies.

    It also describes ``[tool.retrykit]`` in pyproject.toml. Its definition ``policy``
    is a single policy, as `Policy.from_dict` reads it. Its description lists the rules
    that only the loader can check.

    >>> schema = policy_schema()
    >>> schema["$id"], schema["required"]
    ('urn:retrykit:policy', ['policies'])
    >>> schema["$defs"]["policy"]["properties"]["max_attempts"]["default"]
    5
    """
    text = files("retrykit.config").joinpath("policy.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema

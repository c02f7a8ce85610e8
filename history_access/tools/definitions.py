"""The tools as models are told of them, in each dialect, from the one definition of their arguments."""

from typing import Any, Literal

from history_access.tools.arguments import Arguments

Dialect = Literal["openai", "anthropic", "mcp", "json_schema"]


def definition(model: type[Arguments], dialect: Dialect, *, strict: bool = False) -> dict[str, Any]:
    """One tool in one dialect; `strict` gives OpenAI's strict form. A ValueError for another dialect."""
    if strict and dialect != "openai":
        raise ValueError("strict: only the openai dialect has a strict form")
    name, description, schema = model.tool, str(model.__doc__), parameters(model)
    if dialect == "openai":
        function: dict[str, Any] = {"name": name, "description": description, "parameters": schema}
        if strict:
            function |= {"parameters": _strict(schema), "strict": True}
        return {"type": "function", "function": function}
    if dialect == "anthropic":
        return {"name": name, "description": description, "input_schema": schema}
    if dialect == "mcp":
        hints = {"readOnlyHint": True, "openWorldHint": False}
        return {"name": name, "description": description, "inputSchema": schema, "annotations": hints}
    if dialect == "json_schema":
        return {**schema, "title": name, "description": description}
    raise ValueError(f"{dialect}: no such dialect; there are openai, anthropic, mcp and json_schema")


def parameters(model: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, where what may be left out is not also null."""
    schema = model.model_json_schema()
    properties = {name: _property(said) for name, said in schema["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _property(said: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in said.items() if name not in {"title", "anyOf"}}
    if kept.get("default", "") is None:
        del kept["default"]
    for option in said.get("anyOf", ()):
        if option != {"type": "null"}:
            kept = {**option, **kept}
    return kept


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Every property required, with null for what may be left out, and no keyword that strict refuses."""
    return {
        **schema,
        "properties": {
            name: _strict_property(said, required=name in schema["required"])
            for name, said in schema["properties"].items()
        },
        "required": list(schema["properties"]),
    }


def _strict_property(said: dict[str, Any], *, required: bool) -> dict[str, Any]:
    kept = {name: value for name, value in said.items() if name in {"type", "description", "enum"}}
    if required:
        return kept
    optional = {**kept, "type": [kept["type"], "null"]}
    if "enum" in kept:
        optional["enum"] = [*kept["enum"], None]
    return optional

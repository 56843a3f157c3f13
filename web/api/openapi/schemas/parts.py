"""Parts that the schemas share: strict objects, references, and scalars (interface, section 1)."""

from typing import Any

Schema = dict[str, Any]

_SLOT_PATTERN = "^([01][0-9]|2[0-3]):[0-5][0-9]$"


def ref(name: str, description: str | None = None) -> Schema:
    """A reference to a component schema, with a description for this place."""
    reference: Schema = {"$ref": f"#/components/schemas/{name}"}
    return reference if description is None else {**reference, "description": description}


def answer_object(properties: Schema, *, optional: tuple[str, ...] = (), **more: object) -> Schema:
    """An object we send: these members, all present but the `optional` ones.

    Open, for /v1 may grow by members; the tests close it, to find one that is not described.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        **more,
    }


def request_object(properties: Schema, *, required: tuple[str, ...] = (), **more: object) -> Schema:
    """An object we receive: unknown members are ignored."""
    schema: Schema = {
        "type": "object", "properties": properties, "additionalProperties": True, **more,
    }  # fmt: skip
    return {**schema, "required": list(required)} if required else schema


def text(description: str, **more: object) -> Schema:
    """A string."""
    return {"type": "string", "description": description, **more}


def integer(description: str, **more: object) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": description, **more}


def boolean(description: str, **more: object) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": description, **more}


def list_of(items: Schema, description: str, **more: object) -> Schema:
    """An array whose items all look alike."""
    return {"type": "array", "items": items, "description": description, **more}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def uuid(description: str) -> Schema:
    """An identifier: a UUID in its canonical spelling."""
    return text(description, format="uuid")


def venue_date(description: str) -> Schema:
    """`YYYY-MM-DD` in the venue's time zone."""
    return text(description, format="date", examples=["2026-11-21"])


def slot_time(description: str) -> Schema:
    """`HH:MM` in the venue's time zone."""
    return text(description, pattern=_SLOT_PATTERN, examples=["19:30"])


def timestamp(description: str) -> Schema:
    """An instant: ISO 8601 in UTC with milliseconds."""
    return text(description, format="date-time")


def access_code(description: str) -> Schema:
    """The spoken code `SVC-XXXX`."""
    return text(description, pattern="^SVC-[2-9A-HJKMNP-Z]{4}$", examples=["SVC-7KQ4"])

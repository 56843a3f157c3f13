"""The OpenAPI document with every answer closed, so that a member it does not name is a fault."""


def close_answers(schema):
    """The same with no further members in objects that do not say they take some."""
    if isinstance(schema, list):
        return [close_answers(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: close_answers(each) for name, each in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed

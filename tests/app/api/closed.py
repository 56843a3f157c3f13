"""Close the schemas of answers, so that an undocumented member is an error."""


def close_answers(schema):
    """Set `additionalProperties` to false in all objects that do not set it themselves."""
    if isinstance(schema, list):
        return [close_answers(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: close_answers(each) for name, each in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed

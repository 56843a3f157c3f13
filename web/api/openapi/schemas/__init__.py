"""The objects of contract section 2 as JSON Schema."""

"""The objects of the interface, section 2, as JSON Schema."""

"""What the box can tell about its own state, and what to do where it is not well."""

"""The door log outside of the box: exported, signed, and checked wherever it is."""

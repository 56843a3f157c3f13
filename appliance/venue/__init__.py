"""The venue with its tables, slots and closings: model, queries, validation and edits."""

"""The venue, its tables, slots and closing days: model, queries, validation and edits."""

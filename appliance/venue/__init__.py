"""The venue, its tables, slots and closing days: rules, rows, edits."""

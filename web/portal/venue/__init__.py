"""The room "venue": tables, slots, closing days and rules."""

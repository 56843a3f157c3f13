"""The room "door": terminals, readers, conflicts, the door log, signing keys."""

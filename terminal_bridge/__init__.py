"""The door: the terminal protocol, attached scanners, and the bridge for a remote door."""

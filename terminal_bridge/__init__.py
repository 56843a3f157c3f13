"""The door: the protocol of terminals, attached scanners, and the bridge at another door."""

"""The door: guest passes, access codes, scans, verdicts, check-in, terminals, the scan log."""

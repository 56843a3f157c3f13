"""The door: guest passes, access codes, scans, verdicts, check-in, terminals and the scan log."""

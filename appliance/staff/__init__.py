"""Staff accounts, sign-in, two-factor, first run, and the audit log."""

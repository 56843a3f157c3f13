"""Staff accounts, sign-in, two-factor sign-in, the initial setup and the audit log."""

"""Staff accounts, sign-in, two-factor sign-in, the setup and the audit log."""

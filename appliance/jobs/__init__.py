"""Background jobs: reservation states, nightly jobs, retention, watchdog and disk reserve."""

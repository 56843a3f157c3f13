"""Background jobs: reservation states, nightly jobs, retention, watchdog, disk reserve."""

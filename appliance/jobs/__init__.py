"""Background work: reservation states, nightly work, retention, watchdog, disk reserve."""

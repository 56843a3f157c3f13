"""What the scheduler runs: reservation states, the nightly work, retention, disk reserve."""

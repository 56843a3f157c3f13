"""`venuebox bridge`: scanners at another door than the box."""

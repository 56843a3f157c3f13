"""What the box does by itself: closing the evening, expiry, retention."""

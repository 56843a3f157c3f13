"""The checks of `venuebox doctor`, and what to do about what they find."""

"""The checks of `venuebox doctor`, with their findings and remedies."""

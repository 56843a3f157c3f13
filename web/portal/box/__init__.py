"""The room of the box itself: how it is doing, what it needs, what it wrote down."""

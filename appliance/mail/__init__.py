"""Letters to guests and the sender that brings them."""

"""What a guest sees: the access page and the claim page."""

"""One's own account: where one is signed in, and the password."""

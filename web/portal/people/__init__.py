"""The people of the house: who may sign in, as what, and what was done about it."""

"""What happens here: one file per verb, one transaction each."""

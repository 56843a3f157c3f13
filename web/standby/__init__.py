"""The standby machine: it keeps a proven backup, shows its state on a page, and takes over."""

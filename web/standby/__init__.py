"""The spare machine: it keeps a proven backup, shows it on a page, and takes over."""

"""The portal: pages for staff."""

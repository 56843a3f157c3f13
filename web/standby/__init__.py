"""The standby: a spare machine that can take the box's place.

It keeps a backup that was proven by a trial restore, and shows its state on a page.
"""

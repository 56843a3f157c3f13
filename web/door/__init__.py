"""The door app: the page that phones and tablets at the door install."""

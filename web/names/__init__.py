"""Under which names the box is found, and why a phone may trust it: mDNS, https, the authority."""

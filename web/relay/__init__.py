"""The relay: one public server passes https to many boxes behind routers, without reading it.

A box dials the relay over SSH and asks for the connections to its name. The relay reads the server
name of each TLS connection and opens a channel to that box. TLS ends in the box.
"""

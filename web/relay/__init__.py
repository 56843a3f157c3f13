"""The relay: a public server that forwards https connections to boxes behind routers.

A box connects to the relay over SSH and asks it to forward the connections for its host name. The
relay reads the server name of each TLS connection and opens an SSH channel to the box with that
name. The relay cannot decrypt the connection; only the box can.
"""

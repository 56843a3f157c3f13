"""The relay: a public server that forwards https to many boxes behind routers, still encrypted.

A box connects to the relay over SSH and requests the connections to its host name. The relay reads
the server name of each TLS connection and opens an SSH channel to the box with that name. Only the
box decrypts TLS.
"""

"""The box's side of a relay: a public server with HAProxy and sshd (docs/operations/relay.md).

The box connects to sshd, which opens a channel to it for each connection to the box's host name.
HAProxy finds the box by the server name of the TLS connection, and cannot decrypt it.
"""

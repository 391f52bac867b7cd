"""The MQTT protocol of one client: CONNECT to DISCONNECT, session state, flow control, the session journal.
No sockets, no clock: bytes and the time come in, packets and router commands go out.
"""

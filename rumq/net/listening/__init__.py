"""Listeners: accept a socket, read what comes before MQTT, pass a connection on."""

"""MQTT over WebSocket on the gateway's port: a client with a token's secret as its password, relayed to the broker."""

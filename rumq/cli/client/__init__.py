"""`rumqd pub` and `rumqd sub`: MQTT clients with mosquitto's flags."""

"""`rumqd pub`, `sub`, `rr` and `bench`: MQTT clients with mosquitto's flags."""

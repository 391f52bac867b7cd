"""From the log to subscribers: fan-out, replay, redelivery, retained messages, wills."""

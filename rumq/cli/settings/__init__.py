"""What settings are in force: `rumqd show settings`, `rumqd config`."""

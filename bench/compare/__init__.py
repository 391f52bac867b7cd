"""`python -m bench compare`: one report of brokers side by side, for an unattended half hour."""

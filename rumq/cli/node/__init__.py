"""The processes of a node of a cluster, built from the settings."""

"""The agent: the one process of a node that talks to the control plane, and tells the others what it says."""

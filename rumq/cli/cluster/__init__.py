"""`rumqd cluster`: what an operator sees of a cluster, and changes in it, by way of one node's agent."""

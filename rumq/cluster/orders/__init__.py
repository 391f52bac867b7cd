"""Where an operator's order goes, and what follows: formation, placement, replacement of nodes."""

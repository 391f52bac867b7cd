"""How amounts and progress look on a terminal."""

"""Where a broker's time goes in a scenario, as a flame graph."""

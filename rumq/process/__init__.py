"""The processes of a broker: each made from settings, started, watched and stopped. Commands call it."""

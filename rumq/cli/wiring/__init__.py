"""Objects that a broker process builds from its settings: listeners, streams, limits, sidecars."""

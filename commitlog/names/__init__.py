"""Names that records refer to by number: topics and publishers."""

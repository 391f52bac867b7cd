"""What finds a record without a scan: the index of a segment, its dictionary of names, the list of segments."""

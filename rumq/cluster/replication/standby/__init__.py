"""A replica that does not lead: it follows a leader, and takes office when there is none."""

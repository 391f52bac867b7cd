"""What a session asks of the connection below it and of the clock."""

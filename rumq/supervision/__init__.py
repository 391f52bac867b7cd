"""Processes that are watched: started again, told to systemd, ended when they hang."""

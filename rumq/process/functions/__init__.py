"""The process that runs the functions of a broker."""

"""What one message costs a broker: instructions by callgrind, and CPU time, for a few patterns of sending."""

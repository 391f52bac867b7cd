"""One module for each group of requests: what is answered."""

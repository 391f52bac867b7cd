"""A client whose broker is away: the store-and-forward file."""

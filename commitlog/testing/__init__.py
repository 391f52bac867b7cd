"""A simulated disk and its files, for tests: crashes, power losses and faults on demand."""

"""The structure of the product in numbers, read from its text: `python -m tests.house`."""

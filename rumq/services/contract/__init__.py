"""What callers are told: faults with their details, pages."""

"""What a setting may be: text, a number, a choice."""

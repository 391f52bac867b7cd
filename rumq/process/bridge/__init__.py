"""The process of the bridges."""

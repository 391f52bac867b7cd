"""Parquet files of the lake: made, checked, published, merged, verified."""

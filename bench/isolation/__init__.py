"""Latency of one publisher while another client loads the broker; docs/figures/figures.md, "Neighbours"."""

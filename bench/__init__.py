"""Benchmarks: `python -m bench` measures rumq beside other brokers and checks every message. bench/README.md."""

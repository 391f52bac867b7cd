"""Kernels of the lake: they walk bytes and give numbers. Compiled where that is possible, else they run as they are."""

"""The generator's two inner loops. They compile like rumq's own kernels and also run as they are."""

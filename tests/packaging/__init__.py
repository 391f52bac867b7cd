"""What operators install: the service, the packages, images and charts."""

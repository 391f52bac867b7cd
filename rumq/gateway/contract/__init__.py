"""What the gateway promises its clients: endpoints, messages, problems, the OpenAPI document."""

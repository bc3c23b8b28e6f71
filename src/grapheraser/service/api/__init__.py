"""The HTTP API of the service: own routes, predictions, OpenDSR, metrics and events."""

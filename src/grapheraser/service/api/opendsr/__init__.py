"""OpenDSR 2.0: erasure requests that controllers pass on, and callbacks about them."""

"""The paper's tables and figures, one module each, and the figures that it prints."""

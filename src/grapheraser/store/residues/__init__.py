"""Residues: what deleted data may have left in a run's folder."""

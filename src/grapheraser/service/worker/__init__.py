"""The worker: carries requests out, verifies runs, makes and restores backups."""

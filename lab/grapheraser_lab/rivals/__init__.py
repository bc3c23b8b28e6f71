"""GraphEraser beside what one would pick instead, on the same splits and machine in one run."""

"""The arena: any method of unlearning, by three calls, against what retraining would have given."""

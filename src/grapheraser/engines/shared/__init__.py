"""Shared by the engines: where tensors lie, how edges weigh, the rates of Adam and dropout."""

"""What the engines share: where tensors lie, how edges weigh, dropout's numbers, Adam's rates."""

"""What of a model is explained: its raw output, a probability, a response or a loss."""

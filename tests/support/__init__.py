"""What the tests share: random inputs, tolerances, reference records and tiny checkpoints."""

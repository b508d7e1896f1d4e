"""Training a biLM on plain text: recipe, text, a fast training step, optimisers, checkpoints and the training loop."""

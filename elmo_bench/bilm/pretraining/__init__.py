"""Training a biLM on plain text: the recipe, its text, a fast step, optimisers, checkpoints and the loop over them."""

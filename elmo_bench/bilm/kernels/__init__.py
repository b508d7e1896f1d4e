"""The frozen biLM by the compiled functions of `nn/kernels/`, each beside the same in torch."""

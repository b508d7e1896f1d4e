"""All C++ of the project: what `encode` computes with, each function beside the same in torch."""

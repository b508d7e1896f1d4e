"""What `make bench` measures: the biLM compared with the machine's best rate and with a reference implementation."""

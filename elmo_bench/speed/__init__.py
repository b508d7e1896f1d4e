"""What `make bench` measures: the biLM against the best that this machine can do, and against the plain way."""

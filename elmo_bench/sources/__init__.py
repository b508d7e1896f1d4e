"""The public sources of the data: what `make data` fetches, checks and turns into the files that the tasks read."""

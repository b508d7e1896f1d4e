"""The public sources of the data: `make data` fetches and checks them, and converts them to the tasks' files."""

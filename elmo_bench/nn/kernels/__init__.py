"""All C++ of the project, and what compiles and calls it."""

"""Applications that read, process and write, on a real broker, and what their outputs show of each input."""

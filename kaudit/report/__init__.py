"""One file per output format, over a small console layer. Results in, text out: nothing here reads, prints or exits."""

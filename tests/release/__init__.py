"""The package as strangers get it: built, installed in fresh environments on every Python there is, and run far from the checkout."""

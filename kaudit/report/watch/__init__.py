"""What a watch shows while it runs."""

"""Reports for people, on terminals and in Markdown."""

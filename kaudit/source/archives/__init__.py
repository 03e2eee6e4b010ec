"""Archives and compressed files in place of directories and files: read where they lie, in bounded memory, never unpacked to disk."""

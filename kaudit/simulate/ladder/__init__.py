"""Who sent what when, drawn."""

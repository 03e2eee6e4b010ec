"""Typer signatures, console and exit codes; heavy imports inside commands."""

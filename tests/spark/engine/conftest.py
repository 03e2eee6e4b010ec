"""The engines' fixtures: here `spark` is the engine, not a session."""

from tests.engines.conftest import arrow_session, engine, local, spark

__all__ = ["arrow_session", "engine", "local", "spark"]

"""Hatch's build hook: a wheel and a source distribution carry the commit and the address they were made from."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface[Any]):
    """Adds kaudit/build.json. A wheel made from a source distribution finds it there already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file; an editable install asks git itself."""
        sys.path.insert(0, self.root)
        from kaudit.installation import BUILD_FILE, build_of  # noqa: PLC0415 - the package that is built

        package = Path(self.root, "kaudit")
        if version == "editable" or (package / BUILD_FILE).exists():
            return
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(build_of(package)._asdict(), file, indent=2)
            file.write("\n")
        self._made = file.name
        build_data["force_include"][file.name] = f"kaudit/{BUILD_FILE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the temporary file."""
        if made := getattr(self, "_made", None):
            Path(made).unlink()

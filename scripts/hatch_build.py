"""Build hook: a wheel carries `models/` as `cosim/_data/models`; an editable install reads the checkout instead."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ModelsInWheel(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"]["models"] = "cosim/_data/models"

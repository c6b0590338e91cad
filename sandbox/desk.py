"""The operator's desk: the settings as they are now, the luck and the ledger, shared by all parts."""

from typing import Any

from sandbox.config import (
    AnySettings,
    Config,
    EngineSettings,
    ServiceSettings,
    WebhookSettings,
    WordPressSettings,
)
from sandbox.ledger import Ledger
from sandbox.luck import Luck


class Desk:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._now: dict[str, AnySettings] = config.by_name()
        self.luck = Luck(config.seed)
        self.ledger = Ledger()

    def of_type(self, kind: type[AnySettings]) -> list[str]:
        return [name for name, settings in self._now.items() if type(settings) is kind]

    def service(self, name: str) -> ServiceSettings:
        settings = self._now[name]
        assert isinstance(settings, ServiceSettings)
        return settings

    def engine(self, name: str) -> EngineSettings:
        settings = self._now[name]
        assert isinstance(settings, EngineSettings)
        return settings

    def blog(self, name: str) -> WordPressSettings:
        settings = self._now[name]
        assert isinstance(settings, WordPressSettings)
        return settings

    def hook(self, name: str) -> WebhookSettings:
        settings = self._now[name]
        assert isinstance(settings, WebhookSettings)
        return settings

    def change(self, changes: dict[str, dict[str, Any]]) -> None:
        """All or nothing. Raises KeyError for an unknown name, pydantic.ValidationError for a bad value."""
        changed = {
            name: type(self._now[name]).model_validate({**self._now[name].model_dump(), **fields})
            for name, fields in changes.items()
        }
        self._now.update(changed)

    def as_json(self) -> dict[str, object]:
        return {name: settings.model_dump(mode="json") for name, settings in self._now.items()}

    def reset(self) -> None:
        self._now = self._config.by_name()
        self.luck.forget()
        self.ledger = Ledger()

"""Settings: five layers, the later one wins, and every value knows where it came from.

    defaults < the user's moonwake.toml < the project's moonwake.toml < MOONWAKE_* < flags

Laws:
- A key that is unknown, of a wrong type, or not allowed where it stands is an error that names the place.
- A project's file may come from a stranger or be written by an agent, so it can tighten confinement, never
  loosen it (`project.py` says which keys that concerns).
- No secret is a setting: config names the environment variable that holds a key, never the key.

Environment: `MOONWAKE_MODEL=...` sets `model`; `__` goes one table down, as in `MOONWAKE_TOOLS__TIMEOUT=60` or
`MOONWAKE_PROVIDERS__OLLAMA__BASE_URL=...` (names are lower case there, so the quoted ids of `[models."ID"]` can
only be set in a file). Lists are separated by commas. `MOONWAKE_EXEC` is short for `MOONWAKE_TOOLS__EXEC`. An
empty variable counts as not set.
"""

from .load import CONFIG_NAME, OTHER_VARIABLES, load_config, user_config_file
from .models import CacheConfig, ModelConfig, PriceConfig
from .schema import (
    Config,
    LimitsConfig,
    LocalConfig,
    Origin,
    ProviderConfig,
    SkillsConfig,
    ToolsConfig,
)

__all__ = [
    "CONFIG_NAME",
    "OTHER_VARIABLES",
    "CacheConfig",
    "Config",
    "LimitsConfig",
    "LocalConfig",
    "ModelConfig",
    "Origin",
    "PriceConfig",
    "ProviderConfig",
    "SkillsConfig",
    "ToolsConfig",
    "load_config",
    "user_config_file",
]

"""What can be set: frozen tables, no unknown keys. The first line of a field's comment is what the docs say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, PrivateAttr, StringConstraints

from .models import ModelConfig
from .table import Number, Table

LayerName: TypeAlias = Literal["default", "user", "project", "environment", "flag"]
Exec: TypeAlias = Literal["off", "sandbox", "unconfined"]
UserFile: TypeAlias = Literal["nearest", "workspace", "global"]
Thinking: TypeAlias = Literal["off", "low", "medium", "high", "max"]

#: From tight to loose; a project may only move towards the front.
EXEC_ORDER: tuple[Exec, ...] = ("off", "sandbox", "unconfined")


def _model_reference(text: str) -> str:
    if not text or any(character.isspace() for character in text) or "" in text.split("/"):
        raise ValueError('written as "provider/model" or "model", without spaces')
    return text


def _server_address(text: str) -> str:
    rest = text.removeprefix("https://").removeprefix("http://")
    if rest == text or not rest or any(character.isspace() for character in text):
        raise ValueError('an address that begins with "http://" or "https://"')
    if "@" in rest.split("/", 1)[0]:
        raise ValueError("an address without a user name or password (name the key's variable in key_env)")
    return text.rstrip("/")


def _variable_name(text: str) -> str:
    # A key pasted here by mistake must not be echoed, so the text says only what is expected.
    if not text.isascii() or not text.isidentifier():
        raise ValueError('the NAME of an environment variable, such as "OPENAI_API_KEY", not the key itself')
    return text


ModelReference = Annotated[str, AfterValidator(_model_reference)]
ServerAddress = Annotated[str, AfterValidator(_server_address)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")]


class ProviderConfig(Table):
    """`[providers.NAME]`: a server that speaks one of the wires. `key_env` names the variable with its key. The limits
    are of all calls of a process with that key: at once (None: 256), and requests and tokens a minute (None: none)."""

    base_url: ServerAddress | None = None
    key_env: VariableName | None = None
    wire: Literal["anthropic", "openai_chat", "openai_responses"] | None = None
    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)


class ToolsConfig(Table):
    """`[tools]`. `timeout` is in seconds, for tools that name none of their own."""

    exec: Exec = "sandbox"
    network: bool = False
    timeout: float = Field(default=120.0, gt=0, le=86_400, allow_inf_nan=False)
    disabled: tuple[Name, ...] = ()


class LimitsConfig(Table):
    """`[limits]`. `max_steps`: model calls a turn. `margin`, `max_output`: tokens; None leaves it to the model's
    window and its catalog entry."""

    max_steps: int = Field(default=50, ge=1, le=10_000)
    margin: int | None = Field(default=None, ge=64)
    max_output: int | None = Field(default=None, ge=1)


class EconomyConfig(Table):
    """`[economy]`. `warming`: whether an agent whose conversation is open may send small requests while nobody talks,
    where that is expected to cost less than finding the cache expired; None decides by what was measured."""

    warming: bool | None = None


class AgentSpendConfig(Table):
    """`[spend.agents.NAME]`: US dollars that one agent may spend a day and a month."""

    day: Number | None = None
    month: Number | None = None


class SpendConfig(Table):
    """`[spend]`: US dollars that all model calls on this machine may cost a day and a month (local time), those of one
    session, and those of one turn. None: no cap."""

    day: Number | None = None
    month: Number | None = None
    session: Number | None = None
    turn: Number | None = None
    agents: Mapping[Name, AgentSpendConfig] = Field(default_factory=dict)


class CompactionConfig(Table):
    """`[compaction]`: how room is made in a conversation that grows too long, and when.

    `strategy`: `summary` (the model sums up what goes), `provider` (the provider's own compaction, where the model
    has one), `blank` (it is cleared), `off` (the oldest turns are cut
    without a summary). `block` and `idle` are shares of what a request may take: from `block` on a call waits, from
    `idle` on it is made while nobody talks and the cache is cold. `messages`: so many are a reason while nobody talks;
    `keep` messages and `keep_tokens` tokens stay word for word at most."""

    strategy: Literal["summary", "provider", "blank", "off"] = "summary"
    block: float = Field(default=0.85, gt=0, lt=1, allow_inf_nan=False)
    idle: float = Field(default=0.5, gt=0, lt=1, allow_inf_nan=False)
    messages: int = Field(default=50, ge=2)
    keep: int = Field(default=25, ge=1)
    keep_tokens: int = Field(default=20_000, ge=1)


class PromptConfig(Table):
    """`[prompt]`. `user_file`: whose USER.md is shown; `share`: how much of a model's window the sections may take,
    None for the usual."""

    user_file: UserFile = "nearest"
    share: float | None = Field(default=None, ge=0.02, le=0.8, allow_inf_nan=False)


class SkillsConfig(Table):
    """`[skills]`. `folders`: more places whose sub-folders (or Markdown files) are skills, such as `~/.claude/skills`;
    a relative one is taken from the workspace."""

    folders: tuple[str, ...] = ()


class HooksConfig(Table):
    """`[hooks]`. `trust`: SHA-256 (hex) of the files of workspaces that may run as they are; `timeout`: seconds for one
    call of a hook; `disabled`: names of hooks that are not loaded."""

    trust: tuple[Digest, ...] = ()
    timeout: float = Field(default=10.0, gt=0, le=600, allow_inf_nan=False)
    disabled: tuple[Name, ...] = ()


class LocalConfig(Table):
    """`[local]`: the embedded model. `model` is a name that `moonwake model get` knows, or a GGUF file; `threads`
    None is chosen from the machine; `window` is in tokens."""

    model: str = Field(default="smollm2", min_length=1)
    threads: int | None = Field(default=None, ge=1, le=256)
    window: int | None = Field(default=None, ge=256)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from; `str()` of it fits into a sentence."""

    layer: LayerName
    where: str

    def __str__(self) -> str:
        return self.where


DEFAULT = Origin("default", "the default")


class Config(Table):
    """All settings. `model` None means: look for one (keys, then local servers, then the embedded model)."""

    model: ModelReference | None = None
    fallbacks: tuple[ModelReference, ...] = ()
    fallback_on_refusal: bool = False
    agent: Name = "assistant"
    thinking: Thinking | None = None
    images: bool = True
    providers: Mapping[Name, ProviderConfig] = Field(default_factory=dict)
    models: Mapping[str, ModelConfig] = Field(default_factory=dict)
    tools: ToolsConfig = ToolsConfig.model_construct()
    limits: LimitsConfig = LimitsConfig.model_construct()
    economy: EconomyConfig = EconomyConfig.model_construct()
    spend: SpendConfig = SpendConfig.model_construct(agents={})
    compaction: CompactionConfig = CompactionConfig.model_construct()
    prompt: PromptConfig = PromptConfig.model_construct()
    skills: SkillsConfig = SkillsConfig.model_construct()
    hooks: HooksConfig = HooksConfig.model_construct()
    local: LocalConfig = LocalConfig.model_construct()

    _origins: Mapping[str, Origin] = PrivateAttr(default_factory=dict)
    _notes: tuple[str, ...] = PrivateAttr(default=())

    def origin_of(self, key: str) -> Origin:
        """Where the value of `key` (dotted, as in `tools.exec`) came from."""
        return self._origins.get(key, DEFAULT)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of how the layers came together, a sentence each."""
        return self._notes

    def settings(self) -> Iterator[tuple[str, Any, Origin]]:
        """Every value that is set or has a default: dotted key, value, origin. No secret is among them."""
        for key, value in _leaves(self):
            yield key, value, self.origin_of(key)


def _leaves(table: Table) -> Iterator[tuple[str, Any]]:
    for name in type(table).model_fields:
        value = getattr(table, name)
        if isinstance(value, Table):
            yield from ((f"{name}.{key}", leaf) for key, leaf in _leaves(value))
        elif isinstance(value, Mapping):
            for entry, inner in value.items():
                yield from ((f"{name}.{entry}.{key}", leaf) for key, leaf in _leaves(inner) if leaf is not None)
        else:
            yield name, value

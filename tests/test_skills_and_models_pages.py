"""What docs/models.md and docs/skills.md show is what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from runtime.config import Config, load_config
from runtime.providers.base import ModelInfo
from runtime.providers.catalog import UNKNOWN, lookup
from runtime.skills import parse_skill
from runtime.workspace import shipped_path

DOCS = Path(__file__).parents[1] / "docs"
MODELS, SKILLS = ((DOCS / name).read_text(encoding="utf-8") for name in ("models.md", "skills.md"))


def settings_of(page: str, folder: Path) -> Config:
    user = folder / "user.toml"
    user.write_text("\n".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)))
    return load_config(folder, {}, {}, user)


def test_the_overrides_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    """Each of its models is looked up with them; a price in part changes the one that is known."""
    config = settings_of(MODELS, tmp_path)
    told = {}
    for name, model in config.models.items():
        provider, _, id = name.partition("/")
        told[name] = lookup(provider, id, model.model_dump(exclude_none=True))
    assert (told["openai/gpt-6.1-sol"].window, told["openai/gpt-6.1-sol"].abilities.images) == (200_000, False)
    price = told["mine/some-model"].price
    assert price is not None
    assert (price.cache_write_5m, price.at(300_000).plain, price.at(300_000).cache_read) == (2.0, 4.0, 0.4)
    known = lookup("anthropic", "claude-sonnet-5-5").price
    changed = told["anthropic/claude-sonnet-5-5"].price
    assert known is not None
    assert changed is not None
    assert (changed.cache_read, changed.output) == (0.08, known.output)


def test_every_fact_of_a_model_is_on_the_page() -> None:
    named = {field.name for field in fields(ModelInfo)} - {"id", "provider", "wire", "base_url"}
    assert {name for name in named if f"`{name}`" not in MODELS} == set()
    assert f"{UNKNOWN.window:,} | {UNKNOWN.max_output:,}" in MODELS


def test_every_shipped_skill_is_on_the_page(tmp_path: Path) -> None:
    shipped = {folder.parent.name for folder in shipped_path("skills").glob("*/SKILL.md")}
    rows = set(re.findall(r"^\| `([a-z-]+)` \|", SKILLS.split("## Where")[0], re.MULTILINE))
    assert rows == shipped
    assert len(settings_of(SKILLS, tmp_path).skills.folders) == 4
    (example,) = re.findall(r"```markdown\n(.*?)```", SKILLS, re.DOTALL)
    skill, faults = parse_skill(example, Path("weekly-report/SKILL.md"), "user")
    assert faults == []
    assert skill is not None
    assert skill.requirements.tools == ("exec",)

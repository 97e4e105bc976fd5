"""What is known of a model file before it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import ModelUnavailable
from runtime.providers.gguf import read_header
from runtime.providers.local import Local
from runtime.providers.local_info import default_threads, describe, fitting_window, template_abilities
from runtime.providers.weights import find_model

from .local_files import LLAMA, write_gguf

WEIGHTS = find_model()


def test_the_header_tells_what_the_runtime_needs(tmp_path: Path) -> None:
    """Window, weights, vocabulary and the attention cache come out of the file's own figures."""
    header = read_header(write_gguf(tmp_path / "m.gguf"))
    assert (header.architecture, header.name, header.version) == ("llama", "Test", 3)
    assert header.window == 131_072
    assert header.parameters == 512 * 2000 + 512
    assert header.vocabulary == 2000
    assert header.cache_bytes == 10 * 2 * (64 + 64) * 2
    assert header.chat_template == LLAMA["tokenizer.chat_template"]


def test_heads_may_differ_between_layers(tmp_path: Path) -> None:
    """A list of heads for each layer is added up."""
    header = read_header(write_gguf(tmp_path / "m.gguf", {**LLAMA, "llama.attention.head_count_kv": [1, 2, 3]}))
    assert header.cache_bytes == 6 * (64 + 64) * 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"magic": b"PK\x03\x04"}, "not a GGUF file"),
        ({"version": 1}, "version 1"),
        ({"fields": {"general.architecture": "clip"}}, "not a language model"),
        ({"fields": {}}, "not a language model"),
    ],
)
def test_what_is_no_language_model_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    """A wrong file is named with what is wrong with it."""
    path = write_gguf(tmp_path / "m.gguf", **change)  # type: ignore[arg-type] # the table mixes arguments
    with pytest.raises(ModelUnavailable, match=said) as refused:
        read_header(path)
    assert str(path) in str(refused.value)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    """What cannot be opened is a sentence too."""
    for path in (tmp_path, tmp_path / "none.gguf"):
        with pytest.raises(ModelUnavailable, match="cannot read the model file"):
            read_header(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_never_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Cut or overwritten anywhere, a file is read or refused, without a huge allocation."""
    folder = tmp_path_factory.mktemp("damaged")
    small = {key: value for key, value in LLAMA.items() if not key.startswith("tokenizer.ggml")}
    raw = bytearray(write_gguf(folder / "m.gguf", small).read_bytes())
    at = data.draw(st.integers(4, len(raw) - 1))
    raw[at : at + 8] = data.draw(st.binary(min_size=0, max_size=8))
    (folder / "m.gguf").write_bytes(bytes(raw))
    try:
        read_header(folder / "m.gguf")
    except ModelUnavailable as error:
        assert "m.gguf" in str(error)


def test_any_other_model_is_described_by_its_file(tmp_path: Path) -> None:
    """Name, tools, profile and window follow the file, the machine's memory and the processor's speed."""
    path = write_gguf(tmp_path / "Some-7B.gguf", tensors=((4096, 400_000),))
    info = describe(path, memory=None)
    assert (info.id, info.provider, info.wire) == ("Some-7B", "local", "openai_chat")
    assert info.window == 16_384 and info.max_output == 2048
    assert info.abilities.tools and info.profile == "full"
    assert info.price is not None and info.price.output == 0
    assert describe(path, window=1_000_000).window == 131_072
    assert describe(write_gguf(tmp_path / "tiny.gguf")).profile == "tiny"


@given(memory=st.integers(1, 2**42), window=st.integers(1, 2**20), layers=st.integers(1, 100))
def test_the_window_fits_model_and_memory(
    tmp_path_factory: pytest.TempPathFactory, memory: int, window: int, layers: int
) -> None:
    """Never over the training context, and over a quarter of the memory only at the floor of 1,024."""
    path = tmp_path_factory.getbasetemp() / "window.gguf"
    fields = {**LLAMA, "llama.context_length": window, "llama.block_count": layers}
    header = read_header(write_gguf(path, {key: value for key, value in fields.items() if "ggml" not in key}))
    chosen = fitting_window(header, memory)
    assert 0 < chosen <= window
    assert chosen <= 1024 or chosen * header.cache_bytes <= memory / 4


@pytest.mark.parametrize(
    ("template", "tools"),
    [
        ("{%- if tools %}{{ tools | tojson }}{% endif %}", True),
        ("{% for tool in tools %}{% endfor %}", True),
        ("{{ messages }} You have no tools.", False),
        ("{% if toolset %}{% endif %}", False),
        ("", False),
    ],
)
def test_tools_are_on_where_the_template_reads_them(template: str, tools: bool) -> None:
    """The word in plain text does not count."""
    assert template_abilities(template).tools is tools


def test_a_template_that_refuses_is_believed() -> None:
    """Alternation and the form of ids are read from what the template raises."""
    abilities = template_abilities(
        "{{ raise_exception('roles must alternate user/assistant') }}"
        "{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}"
    )
    assert abilities.strict_alternation and abilities.id_pattern == "[A-Za-z0-9]{9}"
    assert not template_abilities("").strict_alternation


def test_threads_leave_room_on_larger_machines() -> None:
    """All of one or two cores, half of more, at most eight."""
    assert [default_threads(cores) for cores in (1, 2, 3, 4, 8, 64)] == [1, 2, 2, 2, 4, 8]


@pytest.mark.local_model
@pytest.mark.skipif(WEIGHTS is None, reason="the embedded model is not there")
def test_the_embedded_model_is_known() -> None:
    """Short prompts, no tools, no price, within its training context."""
    assert WEIGHTS is not None
    info = Local(WEIGHTS).model_info()
    assert (info.id, info.window, info.max_output, info.profile) == ("smollm2-135m", 4096, 512, "tiny")
    assert not info.abilities.tools
    assert Local(WEIGHTS, window=1_000_000).model_info().window == 8192

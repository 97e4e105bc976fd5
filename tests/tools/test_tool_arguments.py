"""Arguments as the model wrote them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import ToolError
from runtime.tools.arguments import parse_arguments

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=5)
# Text rich in what could confuse a repair.
tricky = st.text(alphabet='\\"ud8c0n/:{},[]é', max_size=30)


@given(objects | st.dictionaries(tricky, tricky, max_size=4), st.booleans(), st.sampled_from([None, 2]))
def test_valid_objects_parse_to_themselves(value: dict[str, object], ascii_only: bool, indent: int | None) -> None:
    """A repair never touches what was right."""
    assert parse_arguments(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == value


@given(objects | st.dictionaries(tricky, tricky, max_size=4), st.data())
def test_strict_prefixes_fail(value: dict[str, object], data: st.DataObject) -> None:
    """A call that was cut off anywhere does not run."""
    text = json.dumps(value)
    end = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(ToolError, match="Nothing was run"):
        parse_arguments(text[:end])


@given(tricky, st.data())
def test_strict_prefixes_of_repairable_text_fail(text: str, data: st.DataObject) -> None:
    """The repair of escapes never completes what was cut off."""
    whole = '{"a": "x\\d' + text.replace('"', "").rstrip("\\") + '"}'
    end = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(ToolError):
        parse_arguments(whole[:end])


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_text_is_no_arguments(text: str) -> None:
    """A call without arguments may come with none."""
    assert parse_arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"path":"C:\path"}', {"path": r"C:\path"}),
        (r'{"pattern":"\d+\s*\."}', {"pattern": r"\d+\s*\."}),
        (r'{"pattern":"\\d and \d"}', {"pattern": r"\d and \d"}),
        (r'{"a":"\u12 \uzzzz"}', {"a": r"\u12 \uzzzz"}),
        ('{"a":"one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        ('{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
    ],
)
def test_slips_with_one_reading_are_repaired(text: str, value: dict[str, str]) -> None:
    """Invalid escapes stand for themselves, and raw line breaks are line breaks."""
    assert parse_arguments(text) == value


@pytest.mark.parametrize("text", ["[1]", "null", "3", '"text"', "true"])
def test_other_values_are_refused(text: str) -> None:
    """Arguments are one object."""
    with pytest.raises(ToolError, match="one JSON object"):
        parse_arguments(text)


def test_broken_json_names_the_position() -> None:
    """The model is told where it went wrong and what to do."""
    with pytest.raises(ToolError, match=r"at character 8 of 15.*Send the whole call again"):
        parse_arguments('{"a": 1 "b": 2}')


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', '{"a": ' + "9" * 5000 + "}", '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_what_python_chokes_on_is_a_tool_error(text: str) -> None:
    """Huge numbers, deep nesting and NaN are refused, and nothing else is raised."""
    with pytest.raises(ToolError):
        parse_arguments(text)

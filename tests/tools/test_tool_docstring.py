"""Docstrings as a model reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.tools.docstring import parse_docstring

GOOGLE = """Find a flight.

    Only direct ones.

    Args:
        start (str): Airport code,
            three letters.
        end: Where to: any city.

    Returns:
        The flights.
    """

REST = """Find a flight.

    Only direct ones.

    :param start: Airport code,
        three letters.
    :param str end: Where to: any city.
    :returns: The flights.
    """


@pytest.mark.parametrize("text", [GOOGLE, REST])
def test_both_styles_say_the_same(text: str) -> None:
    """Google and reST docstrings give one description and the parameters."""
    found = parse_docstring(text)
    assert found.description == "Find a flight.\n\nOnly direct ones."
    assert found.parameters == {"start": "Airport code, three letters.", "end": "Where to: any city."}


@given(st.none() | st.text(alphabet="ab :\n\t()Args*param", max_size=80))
def test_any_text_is_taken(text: str | None) -> None:
    """No docstring makes the reader fail."""
    parse_docstring(text)

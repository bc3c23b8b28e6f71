"""Canonical JSON: one spelling per value."""

from __future__ import annotations

import hashlib

import pytest

from grapheraser.canonical import canonical_json, digest_by_page, digest_of


def test_equal_values_are_spelt_alike_whatever_their_order() -> None:
    assert canonical_json({"b": 1, "a": [1.5, "ü"]}) == '{"a":[1.5,"\\u00fc"],"b":1}'
    assert canonical_json({"a": (1.5, "ü"), "b": 1}) == canonical_json({"b": 1, "a": [1.5, "ü"]})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_json_has_no_spelling_for_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)


def test_the_digest_is_that_of_the_text() -> None:
    assert digest_of([1, {"x": None}]) == hashlib.sha256(b'[1,{"x":null}]').hexdigest()


def test_a_digest_by_page_is_of_pages_of_64() -> None:
    first, third = b'{"5":"aa","63":"bb"}', b'{"128":"cc"}'
    pages = [hashlib.sha256(page).hexdigest() for page in (first, third)]
    whole = f'{{"0":"{pages[0]}","2":"{pages[1]}"}}'.encode()
    found = digest_by_page({128: "cc", 63: "bb", 5: "aa"})
    assert found == hashlib.sha256(whole).hexdigest()

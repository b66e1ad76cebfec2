"""A learner's state, nested dicts and lists, as arrays by name and plain values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# A key that begins so is ours; one of the state's own that does is written with a second one.
_MARK = "#"
_TUPLE = "#tuple"
_PLAIN = (type(None), bool, int, float, str)

Arrays = dict[str, NDArray[Any]]
_Path = tuple[str, ...]


def flatten(state: dict[Any, Any]) -> tuple[Arrays, dict[str, Any]]:
    """Take the arrays out of a state, by the keys on the way to them joined with "/".

    The values left are fit for JSON and hold None where an array was. Keys may be text without
    "/" or whole numbers; leaves may be arrays without objects, None, bool, int, float and str.
    """
    if type(state) is not dict:
        raise TypeError(f"a state must be a dict, found {type(state).__name__}")
    arrays: Arrays = {}
    return arrays, _take(state, (), arrays)


def unflatten(arrays: Arrays, values: dict[str, Any]) -> dict[Any, Any]:
    """Make the state again that `flatten` took apart; the arrays are not copied."""
    left = dict(arrays)
    state: dict[Any, Any] = _give(values, (), left)
    if left:
        raise ValueError(f"these arrays have no place in the state: {', '.join(sorted(left))}")
    return state


def check_array(value: Any, name: str) -> NDArray[Any]:
    """Return an array that can be kept without pickle, or say what was found."""
    if type(value) is not np.ndarray:
        raise TypeError(f"{name} must be a numpy array, found {type(value).__name__}")
    if value.dtype.hasobject:
        raise TypeError(f"{name} must be an array without objects, found {value.dtype}")
    return value


def _take(value: Any, path: _Path, arrays: Arrays) -> Any:
    if type(value) is dict:
        named = [(_text(key, path), item) for key, item in value.items()]
        return {key: _take(item, (*path, key), arrays) for key, item in named}
    if type(value) is tuple:
        return {_TUPLE: _take(list(value), (*path, _TUPLE), arrays)}
    if type(value) is list:
        return [_take(item, (*path, str(place)), arrays) for place, item in enumerate(value)]
    if type(value) in _PLAIN:
        return value
    name = "/".join(path)
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"{name} must be a numpy array, None, a bool, int, float or str, or a list, tuple or "
            f"dict of those, found {type(value).__name__}"
        )
    arrays[name] = check_array(value, name)
    return None


def _give(value: Any, path: _Path, arrays: Arrays) -> Any:
    """Put the arrays back, each taken from those that are left."""
    if value is None:
        return arrays.pop("/".join(path), None)
    if isinstance(value, list):
        return [_give(item, (*path, str(place)), arrays) for place, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if list(value) == [_TUPLE]:
        return tuple(_give(value[_TUPLE], (*path, _TUPLE), arrays))
    return {_key(text): _give(item, (*path, text), arrays) for text, item in value.items()}


def _text(key: Any, path: _Path) -> str:
    if type(key) is int:
        return f"{_MARK}{key}"
    if type(key) is not str or "/" in key:
        owner = "/".join(path) or "the state"
        raise TypeError(f'keys must be text without "/" or whole numbers, found {key!r} in {owner}')
    return _MARK + key if key.startswith(_MARK) else key


def _key(text: str) -> str | int:
    if not text.startswith(_MARK):
        return text
    return text[1:] if text.startswith(_MARK * 2) else int(text[1:])

"""Split a learner's state, nested dicts and lists, into named arrays and plain values, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Keys that start with the marker are ours; a key of the state that does gets a second marker.
_MARKER = "#"
_TUPLE = "#tuple"
_PLAIN = (type(None), bool, int, float, str)

Arrays = dict[str, NDArray[Any]]
_Path = tuple[str, ...]


def flatten(state: dict[Any, Any]) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of a state, named by their path of keys joined with "/", and the rest.

    The rest is fit for JSON and holds None in place of each array. Keys may be integers or text
    without "/"; leaves may be arrays without objects, None, bool, int, float and str.
    """
    if type(state) is not dict:
        raise TypeError(f"a state must be a dict, found {type(state).__name__}")
    arrays: Arrays = {}
    values = _take_arrays(state, (), arrays)
    return arrays, values


def unflatten(arrays: Arrays, values: dict[str, Any]) -> dict[Any, Any]:
    """Reassemble the state that `flatten` split; the arrays are not copied."""
    unplaced = dict(arrays)
    state: dict[Any, Any] = _put_arrays(values, (), unplaced)
    if unplaced:
        raise ValueError(f"these arrays have no place in the state: {', '.join(sorted(unplaced))}")
    return state


def to_arrays(state: Any) -> Any:
    """Return a state with numpy arrays in place of its tensors."""
    from torch import Tensor

    return _convert(state, Tensor, lambda tensor: tensor.detach().cpu().numpy())


def to_tensors(state: Any) -> Any:
    """Return a state with tensors in place of its numpy arrays."""
    import torch

    return _convert(state, np.ndarray, torch.from_numpy)


def _convert(state: Any, old: type, convert: Callable[[Any], Any]) -> Any:
    """Convert every leaf of one type in nested dicts and lists."""
    if isinstance(state, old):
        return convert(state)
    if isinstance(state, dict):
        return {name: _convert(part, old, convert) for name, part in state.items()}
    return [_convert(part, old, convert) for part in state] if isinstance(state, list) else state


def check_array(value: Any, name: str) -> NDArray[Any]:
    """Return an array that can be saved without pickle; raise for any other value."""
    if type(value) is not np.ndarray:
        raise TypeError(f"{name} must be a numpy array, found {type(value).__name__}")
    if value.dtype.hasobject:
        raise TypeError(f"{name} must be an array without objects, found {value.dtype}")
    return value


def _take_arrays(value: Any, path: _Path, arrays: Arrays) -> Any:
    if type(value) is dict:
        named = [(_encode_key(key, path), item) for key, item in value.items()]
        return {key: _take_arrays(item, (*path, key), arrays) for key, item in named}
    if type(value) is tuple:
        return {_TUPLE: _take_arrays(list(value), (*path, _TUPLE), arrays)}
    if type(value) is list:
        return [_take_arrays(item, (*path, str(place)), arrays) for place, item in enumerate(value)]
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


def _put_arrays(value: Any, path: _Path, unplaced: Arrays) -> Any:
    """Move the arrays back to their places."""
    if value is None:
        return unplaced.pop("/".join(path), None)
    if isinstance(value, list):
        return [
            _put_arrays(item, (*path, str(place)), unplaced) for place, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    if list(value) == [_TUPLE]:
        return tuple(_put_arrays(value[_TUPLE], (*path, _TUPLE), unplaced))
    return {
        _decode_key(text): _put_arrays(item, (*path, text), unplaced)
        for text, item in value.items()
    }


def _encode_key(key: Any, path: _Path) -> str:
    if type(key) is int:
        return f"{_MARKER}{key}"
    if type(key) is not str or "/" in key:
        owner = "/".join(path) or "the state"
        raise TypeError(f'keys must be integers or text without "/", found {key!r} in {owner}')
    return _MARKER + key if key.startswith(_MARKER) else key


def _decode_key(text: str) -> str | int:
    if not text.startswith(_MARKER):
        return text
    return text[1:] if text.startswith(_MARKER * 2) else int(text[1:])

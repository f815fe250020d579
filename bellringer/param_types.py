"""The types of params: the fields of each, their rules, and the values that each takes."""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from bellringer import checking
from bellringer.errors import Fault

_CONFIG_KEY = re.compile(r"[A-Za-z0-9_]{3,100}")
_INTEGRATION_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_JSON_DEPTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One setting of a trigger. ``default`` is filled in where no value is given."""

    type: ClassVar[str]
    name: str
    label: str
    description: str | None = None
    required: bool = False
    default: Any = None
    tab: str | None = None

    def faults(self) -> Iterator[Fault]:
        """Yield the rules that the fields of this type break, the default left out."""
        yield from ()

    def fault(self, value: Any) -> str | None:
        """Return what is wrong with a value, in words that do not hold it."""
        raise NotImplementedError

    def value(self, given: Any) -> Any:
        """Return what the trigger reads for a value that is right."""
        return given

    def document(self) -> dict[str, Any]:
        """Return the param as JSON: its type, and all fields."""
        written = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        return {"name": self.name, "type": self.type, **written}


@dataclass(frozen=True, slots=True, kw_only=True)
class String(Param):
    """A text, without NUL and lone surrogates, which no database keeps."""

    type = "string"

    def fault(self, value: Any) -> str | None:
        if not isinstance(value, str):
            return "must be a string."
        return _text_fault(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Param):
    """A finite number within its bounds. ``integer`` takes 5.0 for 5."""

    type = "number"
    min: float | None = None
    max: float | None = None
    integer: bool = False

    def faults(self) -> Iterator[Fault]:
        bounds = {"min": self.min, "max": self.max}
        for field, bound in bounds.items():
            if bound is not None and not checking.is_number(bound):
                yield Fault(
                    field, f"is a finite number of at most {checking.SAFE_INTEGER} either way."
                )
        if rule := checking.flag_fault(self.integer):
            yield Fault("integer", rule)
        low, high = self.min, self.max
        if checking.is_number(low) and checking.is_number(high) and low > high:
            yield Fault("min", f"is at most max, which is {high}.")

    def fault(self, value: Any) -> str | None:
        whole = "a whole number" if self.integer else "a number"
        right = (
            checking.is_number(value)
            and (not self.integer or (value == int(value) and abs(value) <= checking.SAFE_INTEGER))
            and (self.min is None or value >= self.min)
            and (self.max is None or value <= self.max)
        )
        return None if right else f"must be {whole}{self._range()}."

    def value(self, given: Any) -> Any:
        return int(given) if self.integer else given

    def _range(self) -> str:
        match self.min, self.max:
            case None, None:
                return ""
            case low, None:
                return f" of at least {low}"
            case None, high:
                return f" of at most {high}"
        return f" from {self.min} to {self.max}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean(Param):
    """A switch."""

    type = "boolean"

    def fault(self, value: Any) -> str | None:
        return None if isinstance(value, bool) else "must be true or false."


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Param):
    """One of ``options``, which maps each value to what people read."""

    type = "select"
    options: Mapping[str, str]

    def __post_init__(self) -> None:
        given: Any = self.options
        if isinstance(given, Mapping):
            object.__setattr__(self, "options", dict(given))
        elif _are_different_strings(given):
            object.__setattr__(self, "options", {option: option for option in given})

    def faults(self) -> Iterator[Fault]:
        if not isinstance(self.options, Mapping) or not self.options:
            yield Fault(
                "options", "is a list of different strings, or a mapping of them to labels."
            )
            return
        for option, label in self.options.items():
            for text in (option, label):
                if rule := checking.line_fault(text, checking.LABEL_LIMIT):
                    yield Fault("options", f"each option {rule}")
                    return

    def fault(self, value: Any) -> str | None:
        if isinstance(value, str) and value in self.options:
            return None
        return f"must be one of {', '.join(map(repr, self.options))}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Json(Param):
    """Any JSON value but null; the trigger reads a copy of its own."""

    type = "json"

    def fault(self, value: Any) -> str | None:
        return _json_fault(value, _JSON_DEPTH)

    def value(self, given: Any) -> Any:
        return copy.deepcopy(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret(Param):
    """``cfg:KEY``: the name of an app config value, never the secret itself."""

    type = "secret"

    def fault(self, value: Any) -> str | None:
        is_reference = isinstance(value, str) and value.startswith("cfg:")
        if is_reference and _CONFIG_KEY.fullmatch(value, len("cfg:")):
            return None
        return (
            "must be cfg:KEY, with the key of an app config value (3 to 100 of A-Z, a-z, 0-9, '_')."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration(Param):
    """The id of an integration of ``kind``; ``variants`` empty: of any variant."""

    type = "integration"
    kind: str
    variants: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.variants, list):
            object.__setattr__(self, "variants", tuple(self.variants))

    def faults(self) -> Iterator[Fault]:
        if rule := checking.kind_fault(self.kind):
            yield Fault("kind", rule)
        if not isinstance(self.variants, tuple):
            yield Fault("variants", "is a list of variants.")
            return
        for variant in self.variants:
            if rule := checking.line_fault(variant, checking.KIND_LIMIT):
                yield Fault("variants", f"each variant {rule}")
                return
            if rule := checking.reserved_fault(variant):
                yield Fault("variants", rule)
        if len(set(self.variants)) < len(self.variants):
            yield Fault("variants", "names each variant once.")

    def accepts(self, variant: str) -> bool:
        """Tell whether an integration of ``variant`` may be picked."""
        return not self.variants or variant in self.variants

    def fault(self, value: Any) -> str | None:
        if isinstance(value, str) and _INTEGRATION_ID.fullmatch(value):
            return None
        return "must be the id of an integration."


@dataclass(frozen=True, slots=True, kw_only=True)
class AppConfig(Param):
    """The key of an app config value."""

    type = "appconfig"

    def fault(self, value: Any) -> str | None:
        if isinstance(value, str) and _CONFIG_KEY.fullmatch(value):
            return None
        return "must be the key of an app config value (3 to 100 of A-Z, a-z, 0-9, '_')."


TYPES: dict[str, type[Param]] = {
    kind.type: kind
    for kind in (String, Number, Boolean, Select, Json, Secret, Integration, AppConfig)
}


def _are_different_strings(value: object) -> bool:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        return False
    return len(set(value)) == len(value)


def _text_fault(value: str) -> str | None:
    if "\0" in value:
        return "must hold no NUL character."
    if any("\ud800" <= character <= "\udfff" for character in value):
        return "must hold no lone surrogates."
    return None


def _json_fault(value: object, depth: int) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _text_fault(value)
    if isinstance(value, int | float):
        return (
            None
            if checking.is_number(value)
            else "must hold finite numbers, and integers below 2^53."
        )
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        parts = [*value, *value.values()]
    elif isinstance(value, list):
        parts = value
    else:
        return "must be a JSON value: lists, mappings with strings as keys, and what they hold."
    if depth == 0:
        return f"must be nested at most {_JSON_DEPTH} deep."
    return next(filter(None, (_json_fault(part, depth - 1) for part in parts)), None)

"""The prompt templates of the model-run summariser: `.md` files, ours or the user's, each with a version."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from compact.core.errors import ConfigError

# The forms that a summary may have.
FORMS = ("task_state", "brief", "decision_log", "code_delta", "session_summary")
_SYSTEM = "system"
_NAMES = (*FORMS, _SYSTEM)
# `remainder_messages` is what the history was called in the first templates.
_BLANK = re.compile(r"\{(max_tokens|max_words|history|remainder_messages)\}")
_HISTORY = ("{history}", "{remainder_messages}")
# Chosen: never fewer words than a sentence has.
_MIN_WORDS = 20


@dataclass(frozen=True, slots=True)
class PromptTemplates:
    """The instructions to a model, by the form of the summary; `system` comes before all of them."""

    texts: Mapping[str, str]

    @classmethod
    def load(cls, folder: str | Path | None = None, own: Mapping[str, str] | None = None) -> PromptTemplates:
        """Load ours, with those of a folder (`brief.md`, `system.md`, …) or single files in their place."""
        ours = files("compact.summarizers.llm") / "prompts"
        texts = {name: (ours / f"{name}.md").read_text(encoding="utf-8") for name in _NAMES}
        texts |= _from_folder(Path(folder)) if folder else {}
        for name, path in (own or {}).items():
            if name not in _NAMES:
                hint = f"use one of {', '.join(_NAMES)}"
                raise ConfigError(f"there is no prompt {name!r}", field="summarizer.prompts", hint=hint)
            texts[name] = _read(Path(path), "summarizer.prompts")
        return cls(texts)

    @property
    def system(self) -> str:
        """What holds for every form."""
        return self.texts[_SYSTEM]

    def fill(self, form: str, *, max_tokens: int, history: str) -> str:
        """Return the template of a form with its blanks filled in; one without a history gets it at its end."""
        template = self._template(form)
        if not any(blank in template for blank in _HISTORY):
            template = f"{template}\n\n{{history}}"
        values = {
            "max_tokens": f"{max_tokens:,}",
            # English has about three words to four tokens; models overshoot, so a few less are asked for.
            "max_words": f"{max(_MIN_WORDS, max_tokens * 2 // 3):,}",
            "history": history,
            "remainder_messages": history,
        }
        # In one go: a blank inside the history is text.
        return _BLANK.sub(lambda blank: values[blank.group(1)], template)

    def instructions(self, form: str) -> str:
        """Return everything that a model gets besides the history."""
        return f"{self.system}\n{self._template(form)}"

    def version(self, form: str) -> str:
        """Return a fingerprint of the instructions: another text, another version."""
        return hashlib.sha256(self.instructions(form).encode()).hexdigest()[:16]

    def _template(self, form: str) -> str:
        if form not in FORMS:
            hint = f"use one of {', '.join(FORMS)}"
            raise ConfigError(f"there is no form of a summary {form!r}", field="policy.summary_form", hint=hint)
        return self.texts[form]


def _from_folder(folder: Path) -> dict[str, str]:
    found = {name: folder / f"{name}.md" for name in _NAMES if (folder / f"{name}.md").is_file()}
    if not found:
        raise ConfigError(
            f"{folder} holds no prompt",
            field="summarizer.prompts_dir",
            hint=f"put one of these files there: {', '.join(f'{name}.md' for name in _NAMES)}",
        )
    return {name: _read(path, "summarizer.prompts_dir") for name, path in found.items()}


def _read(path: Path, field: str) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"cannot read {path}: {reason}", field=field, hint="check the path") from None
    if not text.strip():
        raise ConfigError(f"{path} is empty", field=field, hint="write a prompt into it, or remove it")
    return text

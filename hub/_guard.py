"""Runs a command so that whatever goes wrong, nothing secret is printed."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import huggingface_hub

from hub._secrets import scrubbed, scrubbed_logs
from schemas.errors import ToolkitError


def guarded(command: Callable[[], int], *, stopped: str) -> int:
    """Return the command's exit code; errors are lines on stderr, a bug keeps its traceback, and both are scrubbed."""
    token = _token()
    with scrubbed_logs(token):
        try:
            return command()
        except ToolkitError as error:
            for line in scrubbed(str(error), token).split("\n"):
                print(f"error: {line}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"\n{stopped}", file=sys.stderr)
            return 130
        except Exception:
            print(scrubbed(traceback.format_exc(), token), end="", file=sys.stderr)
            return 1


def _token() -> str | None:
    try:
        return huggingface_hub.get_token()
    except Exception:
        return None  # the command will meet the same fault, and say so

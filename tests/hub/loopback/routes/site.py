"""Routes that are about no repository."""

from __future__ import annotations

from ..accounts import readable, signed_in
from ..cards import check
from ..wire import Call, HubError, Reply, give, route


@route("GET", r"/api/whoami-v2")
def whoami(call: Call) -> Reply:
    """Say whose token it is, and what it may do."""
    return give(signed_in(call).describe())


@route("POST", r"/api/validate-yaml")
def validate_yaml(call: Call) -> Reply:
    """Check the card before anything is uploaded."""
    body = call.json()
    errors, warnings = check(body["content"]) if body["repoType"] == "dataset" else ([], [])
    told = {
        "errors": [{"message": message} for message in errors],
        "warnings": [{"message": message} for message in warnings],
    }
    return give(told, status=400 if errors else 200)


@route("GET", r"/api/telemetry/.+")
def telemetry(call: Call) -> Reply:
    """Take the notice that some clients send of being imported."""
    return Reply()


@route("GET", r"/api/[a-z]+-harnesses")
def registry(call: Call) -> Reply:
    """Give an empty registry of programs that clients run in: they ask where telemetry is on."""
    return give({"standardEnvVars": [], "harnesses": {}})


@route("GET", r"http://datasets-server\.[^/]+/(?:info|parquet)")
def viewer(call: Call) -> Reply:
    """Answer for the dataset viewer as it does for what it has not looked at yet.

    `datasets` puts `datasets-server.` before the host of HF_ENDPOINT. No such name leads here, so the tests name this
    hub as the proxy for all that is not on this machine; whatever else comes that way is unknown, and so noticed.
    """
    call.parts = {"kind": "datasets", "repo": call.request.query["dataset"][0]}
    if readable(call).private:
        raise HubError(404, "The dataset viewer is not available for this private dataset.", code="ResponseNotFound")
    raise HubError(500, "The server is busier than usual and the response is not ready yet.", code="ResponseNotReady")

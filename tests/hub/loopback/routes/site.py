"""Routes that do not concern a repository."""

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
    """Accept the message that some clients send when they are imported."""
    return Reply()


@route("GET", r"/api/[a-z]+-harnesses")
def registry(call: Call) -> Reply:
    """Return an empty registry of the agents that clients run in; clients request it if telemetry is on."""
    return give({"standardEnvVars": [], "harnesses": {}})


@route("GET", r"http://datasets-server\.[^/]+/(?:info|parquet)")
def viewer(call: Call) -> Reply:
    """Answer as the dataset viewer does for a dataset that it has not processed yet.

    `datasets` puts `datasets-server.` before the host of HF_ENDPOINT. That name does not resolve, so the tests
    use this Hub as the proxy for all other hosts. Any other request that arrives this way is unknown and is
    noticed.
    """
    call.parts = {"kind": "datasets", "repo": call.request.query["dataset"][0]}
    if readable(call).private:
        raise HubError(404, "The dataset viewer is not available for this private dataset.", code="ResponseNotFound")
    raise HubError(500, "The server is busier than usual and the response is not ready yet.", code="ResponseNotReady")

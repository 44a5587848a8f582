"""robots.txt as RFC 9309 reads it, by Protego: the longest rule that fits a path decides, and a tie allows."""

from protego import Protego


class Rules:
    """What one robot may do on one host, by its own groups or those for everybody; without any, everything."""

    def __init__(self, robot: str = "", text: str = "") -> None:
        self._robot = robot
        self._parsed = Protego.parse(text.removeprefix("\ufeff"))

    @property
    def delay(self) -> float:
        """Seconds between two requests that the site asks for."""
        return max(0.0, self._parsed.crawl_delay(self._robot) or 0.0)

    def allow(self, path: str) -> bool:
        """Tell whether a path, with its query, may be fetched."""
        # with a host, which rules do not look at: a path such as //x would be taken for one
        return bool(self._parsed.can_fetch(f"http://host{path}", self._robot))

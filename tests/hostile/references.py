"""Every way in which an HTML page can request an external resource, each with a different address.

Tests check that none of the requests is made.
"""

PASSIVE = (
    '<img src="{u}">',
    '<img srcset="{u} 1x, {u}?2 2x">',
    '<picture><source srcset="{u}"><img></picture>',
    '<input type="image" src="{u}">',
    '<video src="{u}" autoplay></video>',
    '<video poster="{u}"></video>',
    '<video><source src="{u}"></video>',
    '<video src="data:video/mp4;base64,AA=="><track default kind="captions" src="{u}"></video>',
    '<audio src="{u}" autoplay></audio>',
    '<iframe src="{u}"></iframe>',
    '<iframe src="{u}" loading="eager" sandbox></iframe>',
    '<iframe srcdoc="&lt;img src={u}&gt;"></iframe>',
    '<iframe srcdoc="&lt;meta http-equiv=refresh content=0;url={u}&gt;"></iframe>',
    '<iframe src="data:text/html,<img src={u}>"></iframe>',
    '<iframe src="data:text/html,<meta http-equiv=refresh content=0;url={u}>"></iframe>',
    '<object data="{u}"></object>',
    '<object data="{u}" type="image/svg+xml"></object>',
    '<object data="{u}" type="text/html"></object>',
    '<object data="{u}" type="application/pdf"></object>',
    '<object data="data:text/html,<img src={u}>"></object>',
    '<embed src="{u}">',
    '<embed src="{u}" type="image/svg+xml">',
    '<embed src="{u}" type="text/html">',
    '<frameset><frame src="{u}"></frameset>',
    '<link rel="stylesheet" href="{u}">',
    '<link rel="alternate stylesheet" title="x" href="{u}">',
    '<link rel="preload" as="image" href="{u}">',
    '<link rel="preload" as="font" crossorigin href="{u}">',
    '<link rel="preload" as="style" href="{u}">',
    '<link rel="preload" as="script" href="{u}">',
    '<link rel="preload" as="fetch" crossorigin href="{u}">',
    '<link rel="modulepreload" href="{u}">',
    '<link rel="prefetch" href="{u}">',
    '<link rel="prerender" href="{u}">',
    '<link rel="preconnect" href="{u}">',
    '<link rel="preconnect" crossorigin href="{u}">',
    '<link rel="dns-prefetch" href="{u}">',
    '<link rel="icon" href="{u}">',
    '<link rel="shortcut icon" href="{u}">',
    '<link rel="apple-touch-icon" href="{u}">',
    '<link rel="manifest" href="{u}">',
    '<link rel="import" href="{u}">',
    "<style>@import url({u});</style>",
    '<style>@import "{u}" print;</style>',
    '<style>.a {{ background-image: url({u}) }}</style><p class="a">x</p>',
    '<p style="background: url({u})">x</p>',
    "<p style=\"background: image-set('{u}' 1x)\">x</p>",
    '<p style="border-image: url({u}) 3">x</p>',
    '<ul style="list-style-image: url({u})"><li>x</ul>',
    '<p style="cursor: url({u}), auto">x</p>',
    '<p style="mask-image: url({u})">x</p>',
    '<p style="clip-path: url({u}#a)">x</p>',
    '<p style="filter: url({u}#a)">x</p>',
    '<p style="shape-outside: url({u}); float: left">x</p>',
    '<style>.b::before {{ content: url({u}) }}</style><p class="b">x</p>',
    '<style>@font-face {{ font-family: q; src: url({u}) }} .c {{ font-family: q }}</style><p class="c">x</p>',
    '<style>@media print {{ .d {{ background: url({u}) }} }}</style><p class="d">x</p>',
    '<svg><image href="{u}" width="9" height="9"/></svg>',
    '<svg><image xlink:href="{u}" width="9" height="9"/></svg>',
    '<svg><use href="{u}#a"/></svg>',
    '<svg><filter id="f"><feImage href="{u}"/></filter><rect filter="url(#f)" width="9" height="9"/></svg>',
    "<svg><style>@import url({u});</style></svg>",
    '<svg><foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="{u}"/>'
    "</foreignObject></svg>",
    '<script src="{u}"></script>',
    '<script type="module" src="{u}"></script>',
    '<script>new Image().src = "{u}"; fetch("{u}"); navigator.sendBeacon("{u}")</script>',
    '<script>new RTCPeerConnection({{iceServers: [{{urls: "stun:{h}"}}]}}).createDataChannel("x")</script>',
    '<script type="speculationrules">{{"prefetch": [{{"source": "list", "urls": ["{u}"]}}]}}</script>',
    '<noscript><img src="{u}"></noscript>',
    '<noscript><iframe src="{u}"></iframe></noscript>',
    '<body background="{u}">',
    '<table background="{u}"><td background="{u}?2">x</table>',
    '<a href="{u}" ping="{u}">x</a>',
    '<form action="{u}"><input name="x" autofocus></form>',
    '<html manifest="{u}">',
    '<base href="{u}/"><img src="relative.png">',
    '<math><mglyph src="{u}"/></math>',
    '<bgsound src="{u}">',
    '<applet archive="{u}" code="x"></applet>',
    '<portal src="{u}"></portal>',
    '<fencedframe src="{u}"></fencedframe>',
    '<iframe src="file://{secret}"></iframe>',
    '<object data="file://{secret}" type="text/plain"></object>',
)
LEADING = (
    '<meta http-equiv="refresh" content="0;url={u}">',
    '<noscript><meta http-equiv="refresh" content="0;url={u}"></noscript>',
    '<noscript><meta http-equiv="refresh" content="0"></noscript>',
    '<meta http-equiv="refresh" content="0;url=about:blank">',
    '<meta http-equiv="refresh" content="0;url=file://{secret}">',
    '<meta http-equiv="refresh" content="0;url=data:text/html,elsewhere">',
)
"""Elements that load another page in place of the page; each is tested in a separate document."""


def documents(addresses: list[str], secret: str) -> dict[str, str]:
    """Return HTML pages by their title; together they request every address in every way."""
    pages = {}
    for number, kind in enumerate(LEADING):
        pages[f"leading{number}"] = _filled(kind, addresses[number % len(addresses)], number, secret)
    for which, address in enumerate(addresses):
        parts = [_filled(kind, address, number, secret) for number, kind in enumerate(PASSIVE)]
        # a base or a frameset changes the effect of later elements, so it is the last element
        pages[f"passive{which}"] = "".join(sorted(parts, key=lambda part: part.startswith(("<frameset", "<base"))))
    return {word: f"<title>{word}</title><p>{word}</p>{page}" for word, page in pages.items()}


def _filled(kind: str, address: str, number: int, secret: str) -> str:
    return kind.format(u=f"{address}/{number}", h=address.partition("//")[2], secret=secret)

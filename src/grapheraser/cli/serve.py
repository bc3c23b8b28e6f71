"""grapheraser serve: the service for a run: queue, worker, API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.cli.service_options import ConfigOption, DatabaseOption, service_settings

if TYPE_CHECKING:
    from grapheraser.service.running import Service

NAME = "serve"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; default 127.0.0.1.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; default 8080.")] = None,
    database: DatabaseOption = None,
    config: ConfigOption = None,
    opendsr_domain: Annotated[
        str | None, typer.Option(help="Domain of this processor, for OpenDSR.")
    ] = None,
    opendsr_certificate: Annotated[
        str | None, typer.Option(help="Its certificate, as a PEM file.")
    ] = None,
    opendsr_key: Annotated[
        str | None, typer.Option(help="The certificate's private key, as a PEM file.")
    ] = None,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Serve predictions, accept requests to forget and carry them out.

    Every setting can also be given by an environment variable or in a file. The first API key is
    printed once.
    """
    given: dict[str, Any] = {"host": host, "port": port, "database": database}
    given |= {"opendsr_domain": opendsr_domain, "opendsr_key": opendsr_key}
    settings = service_settings(config, opendsr_certificate=opendsr_certificate, **given)
    from grapheraser.service.api.start import address_of, bound, first_key, serve
    from grapheraser.service.running import Service

    with bound(settings) as listener:
        service = Service.opened(path, settings, own=own_parts(path, trust))
        key, url = first_key(service), address_of(listener)
        serve(service, listener, lambda: _announce(service, url, key, as_json=json))


def _announce(service: Service, url: str, key: str | None, *, as_json: bool) -> None:
    version = service.served.now.version
    if as_json:
        print_json({"url": url, "version": version} | ({"key": key} if key else {}))
        return
    say(f"serving     {service.served.path} (version {version}) on {url}")
    if key:
        say(f"first key   {key}")
        say("            it is shown this once: keep it, and give others keys of their own.")

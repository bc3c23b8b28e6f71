"""grapheraser witness: cosign the checkpoints of somebody else's log, as long as it only grows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.arguments import read_line
from grapheraser.cli.options import JsonOption
from grapheraser.cli.output import print_json, say
from grapheraser.errors import ParameterError


def witness(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the witness keeps its key and state.")
    ],
    name: Annotated[str, typer.Option(help="Name of the witness, such as witness.example.org/w1.")],
    log: Annotated[
        list[str],
        typer.Option(
            help="Public key of a log: PEM file, for any log that it signs, or a verifier key with "
            "the log's origin, as a line or in a file. Repeat for several."
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8090,
    json: JsonOption = False,
) -> None:
    """Check that logs only grow, and cosign their checkpoints (C2SP tlog-witness).

    Run it on a machine of somebody else than the service. Its key is made on first use; give the
    printed line to whoever checks receipts: `receipt verify --witness-key`.
    """
    from grapheraser.service import needs_extra

    needs_extra()
    if not name or not name.isprintable() or "+" in name or any(map(str.isspace, name)):
        raise ParameterError.of("--name", "witness", "a text without spaces and +", name)
    from grapheraser.receipts.witness import Witness
    from grapheraser.service.api import start
    from grapheraser.service.settings import Settings
    from grapheraser.service.witness import trusted_log, witness_app
    from grapheraser.store.witness import held_by_witness

    logs = [trusted_log(read_line(one)) for one in log]
    settings = Settings(host=host, port=port)
    with held_by_witness(folder) as kept, start.bound(settings) as listener:
        made = Witness(name, kept.signing_key(), logs, kept)
        line, url = made.key.line, start.address_of(listener)
        listener.listen()
        if json:
            print_json({"url": url, "name": name, "key": line})
        else:
            say(f"witness     {name} on {url}")
            say(f"key         {line}")
        start.make_server(witness_app(made), settings).run(sockets=[listener])

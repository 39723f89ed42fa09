"""What py4j logs of a JVM that has ended is nothing that a user reads: cklog says in one line what came of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENDED = """
import logging, os, socket, sys, threading
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from cklog.engine.spark_driver import hush_py4j

if sys.argv[1] == "hushed":
    hush_py4j()
server = socket.create_server(("127.0.0.1", 0))

def end():
    while True:
        taken, _ = server.accept()
        taken.recv(100)
        taken.close()

threading.Thread(target=end, daemon=True).start()
gateway = ClientServer(JavaParameters(port=server.getsockname()[1]), PythonParameters(port=0))
gateway._gateway_client.send_command("c\\n")
logging.getLogger().warning("of somebody else")
os._exit(0)
"""


@pytest.mark.parametrize(("how", "told"), [("hushed", False), ("as it is", True)])
def test_a_connection_that_ends_is_logged_by_nobody(how: str, told: bool) -> None:
    ended = subprocess.run([sys.executable, "-c", ENDED, how], capture_output=True, text=True, check=True, timeout=60)
    assert ("Traceback" in ended.stderr) is told
    assert "of somebody else" in ended.stderr

"""Pages in headless Chromium without a network, driven over its DevTools protocol."""

import asyncio
import itertools
import json
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from probnb_book.publish import find_chromium

try:
    CHROMIUM = find_chromium()
except FileNotFoundError:
    CHROMIUM = None


class Browser:
    """One tab; `errors` and `files` are of the page that was opened last."""

    def __enter__(self):
        if CHROMIUM is None:
            pytest.skip("needs Chromium: none on the path, nor in CHROME")
        websocket = pytest.importorskip("tornado.websocket")
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = (
            "--headless --no-sandbox --disable-gpu --disable-background-networking "
            "--remote-debugging-port=0 --window-size=1200,1000"
        )
        command = [CHROMIUM, *options.split(), "--host-resolver-rules=MAP * ~NOTFOUND"]
        command += [f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        port = Path(self.folder.name, "DevToolsActivePort")
        for _ in range(300):
            if port.exists() and port.read_text().count("\n"):
                break
            time.sleep(0.1)
        port = port.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as told:
            tab = next(t for t in json.load(told) if t["type"] == "page")
        self.loop, self.count = asyncio.new_event_loop(), itertools.count()
        where = tab["webSocketDebuggerUrl"]
        self.socket = self._wait(websocket.websocket_connect, where, max_message_size=2**28)
        self.events = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.loop.close()
        self.folder.cleanup()

    def _wait(self, call, *given, **options):
        async def soon():
            return await asyncio.wait_for(call(*given, **options), 120)

        return self.loop.run_until_complete(soon())

    def _next(self):
        return json.loads(self._wait(self.socket.read_message))

    def send(self, method, **parameters):
        number = next(self.count)
        message = json.dumps({"id": number, "method": method, "params": parameters})
        self._wait(self.socket.write_message, message)
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, path, scripts=True):
        """Load a file; wait until it is there and its mathematics is set."""
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events = []
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())
        if scripts:
            self.run(
                "window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => 1) : 1"
            )

    def run(self, script):
        """Evaluate an expression, or a promise of one."""
        told = self.send(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    @property
    def errors(self):
        kinds = {"Runtime.exceptionThrown", "Network.loadingFailed"}
        self.run("1")
        return [
            e
            for e in self.events
            if e["method"] in kinds
            or (e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] == "error")
            or (e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] == "error")
        ]

    @property
    def addresses(self):
        """What the page asked for."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

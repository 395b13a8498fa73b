"""The flows process, ``python -m flows.runner``, which the files of the journeys leave to each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from tests.journeys.works import ProcessWorks


@dataclass
class FlowsProcess:
    """At most one at a time: its start costs as much as many a test."""

    works: ProcessWorks
    process: subprocess.Popen[bytes] | None = None
    program: tuple[str, ...] = ("-m", "flows.runner")

    def start(self) -> None:
        """Start it where it does not run."""
        if self.process is None:
            with (self.works.home / "runner.log").open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, *self.program], env=self.works.environment, stdout=log, stderr=log,
                    start_new_session=True,
                )

    def end(self) -> int:
        """Tell it, and nothing that it has started, to end; its exit status."""
        assert self.process is not None
        self.process.terminate()
        status = self.process.wait()
        self.kill()
        return status

    def kill(self) -> None:
        """Kill it and all that it has started, and wait for its end."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process = None

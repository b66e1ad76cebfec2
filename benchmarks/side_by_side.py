"""Run many commands at once on one GPU, and keep what they have written so far in one archive.

    python benchmarks/side_by_side.py JOBS --out DIR [--at-once 10] [--seconds 540] [--archive FILE]

JOBS is a file with one shell command a line; empty lines and lines with # are left out. Several processes
share a GPU best through MPS, which is started for them. A line that occurs twice is run once. A command
that succeeded is not run again when the same DIR is given; one that was stopped is, and `everlearn` resumes
its run. One that failed is run once more after all others: the memory of the card may have been full. The
archive holds DIR without checkpoints and is renewed every ten seconds, so that a time limit loses little.
The exit status is 1 if a command failed and has not succeeded since.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import time
from contextlib import suppress
from pathlib import Path

PACK_SECONDS = 10.0
STOP_SECONDS = 20.0  # for commands to end after SIGTERM, before they are killed
LEFT_OUT = (".npz", ".pt", ".lock")  # checkpoints and weights
MPS = {
    "CUDA_MPS_PIPE_DIRECTORY": "/tmp/everlearn-mps",
    "CUDA_MPS_LOG_DIRECTORY": "/tmp/everlearn-mps-log",
}


def main() -> None:
    """Read the arguments and run the jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--archive", type=Path)
    asked = parser.parse_args()
    lines = (line.strip() for line in asked.jobs.read_text().splitlines())
    jobs = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    start_mps()
    started = Jobs(jobs, asked.out, asked.archive)
    started.run(asked.at_once, time.monotonic() + asked.seconds)
    sys.exit(1 if started.failed else 0)


def start_mps() -> None:
    """Start the service through which processes share a GPU; without it they take turns."""
    os.environ.update(MPS)
    for folder in MPS.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False, capture_output=True)
    except FileNotFoundError:
        print("MPS is not installed; the processes take turns", flush=True)
        for name in MPS:
            del os.environ[name]


class Jobs:
    """Commands by number, those that run, and a record of those that succeeded."""

    def __init__(self, jobs: list[str], out: Path, archive: Path | None) -> None:
        """Leave out what succeeded before."""
        self.jobs = jobs
        self.out = out
        self.archive = archive
        self.logs = out / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.record = self.logs / "succeeded.txt"
        done = self.record.read_text().splitlines() if self.record.exists() else []
        self.waiting = [job for job in jobs if job not in done]
        self.running: dict[subprocess.Popen[bytes], str] = {}
        self.repeated: set[str] = set()
        self.failed: set[str] = set()  # and not succeeded since

    def run(self, at_once: int, deadline: float) -> None:
        """Run what waits until it is done or time is up; then stop what runs."""
        packed = began = time.monotonic()
        while (self.waiting or self.running) and time.monotonic() < deadline:
            while self.waiting and len(self.running) < at_once:
                self._start(self.waiting.pop(0))
            self._collect(began)
            if time.monotonic() - packed > PACK_SECONDS:
                self.pack()
                packed = time.monotonic()
            time.sleep(0.2)
        print(f"{len(self.waiting)} not started, {len(self.running)} stopped", flush=True)
        self._stop()
        self.pack()

    def _stop(self) -> None:
        """Stop what runs, and wait until it has written its last rows."""
        for process, job in self.running.items():
            print(f"stopped: {job}", flush=True)
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for process, job in self.running.items():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
            if process.returncode == 0:
                self._record(job)

    def _start(self, job: str) -> None:
        number = self.jobs.index(job)
        with (self.logs / f"{number:03d}.log").open("ab") as log:
            process = subprocess.Popen(
                job, shell=True, stdout=log, stderr=log, start_new_session=True
            )
        self.running[process] = job

    def _collect(self, began: float) -> None:
        for process in [process for process in self.running if process.poll() is not None]:
            job = self.running.pop(process)
            seconds = round(time.monotonic() - began)
            print(f"{seconds} s, exit {process.returncode}: {job}", flush=True)
            if process.returncode:
                self._repeat(job)
            else:
                self._record(job)

    def _record(self, job: str) -> None:
        """Record a job that succeeded."""
        self.failed.discard(job)
        with self.record.open("a") as record:
            record.write(job + "\n")

    def _repeat(self, job: str) -> None:
        """Queue a job that failed for the first time."""
        self.failed.add(job)
        if job not in self.repeated:
            self.repeated.add(job)
            self.waiting.append(job)

    def pack(self) -> None:
        """Write the archive next to its place, then move it there."""
        if self.archive is None:
            return
        part = self.archive.with_suffix(".part")
        with tarfile.open(part, "w:gz", compresslevel=1) as archive:
            for path in sorted(self.out.rglob("*")):
                if path.suffix not in LEFT_OUT and path.name not in LEFT_OUT:
                    _add(archive, path, self.out)
        part.replace(self.archive)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a command and its children, unless they have just ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _add(archive: tarfile.TarFile, path: Path, out: Path) -> None:
    """Add a file, unless its run has just removed it."""
    with suppress(FileNotFoundError):
        archive.add(path, Path(out.name) / path.relative_to(out), recursive=False)


if __name__ == "__main__":
    main()

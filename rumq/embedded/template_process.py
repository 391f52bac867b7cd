"""The template: a process that has imported the broker, and forks one for each request of its program.

A start costs a fork in place of 0.3 s of imports (decision 63). It has one thread and no open files but its
sockets, so that a fork is safe. It ends with its program, however that ends, or once it has had no broker for a while;
and with it its brokers, their processes, and the directories that it made. Knows no MQTT and no settings."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from rumq.embedded.broker_link import BrokerLink, LinkClosed, LinkMessage
from rumq.embedded.forked_broker import become_broker

IDLE_SECONDS = 10.0  # without a broker; the next one would be waited for as the first one is
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PREFIX = "rumq-broker-"


class ForkedBroker:
    """A broker of the program: its link, its directory, and its process while it runs. pidfd: -1 while none runs"""

    def __init__(self, link: BrokerLink) -> None:
        self.link = link
        self.directory = ""
        self.pid, self.pidfd = 0, -1

    def tell(self, message: LinkMessage) -> None:
        with contextlib.suppress(LinkClosed):  # seen when it is read
            self.link.send(message)


class TemplateProcess:
    def __init__(self, control: socket.socket, program: int) -> None:
        """control: carries the link of each new broker, as a descriptor; program: its process id"""
        self._control = control
        self._brokers: list[ForkedBroker] = []
        self._program_fd = -1
        with contextlib.suppress(OSError):  # an old kernel, or one that refuses it: the control socket tells as well
            self._program_fd = os.pidfd_open(program)
        self._has_ended = os.getppid() != program
        self._idle_since = time.monotonic()

    def run(self) -> None:
        try:
            while not self._has_ended:
                self._turn()
        finally:
            for each in list(self._brokers):
                self._end(each)

    def _turn(self) -> None:
        poll = select.poll()
        named: dict[int, ForkedBroker] = {}
        for each in self._brokers:
            for fd in (each.link.fileno(), each.pidfd):
                if fd >= 0:
                    poll.register(fd, select.POLLIN)
                    named[fd] = each
        for fd in (self._control.fileno(), self._program_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        left = self._idle_since + IDLE_SECONDS - time.monotonic()
        if not self._brokers and left <= 0:
            self._has_ended = True
            return
        ready = {fd for fd, _ in poll.poll(None if self._brokers else left * 1000)}
        if self._program_fd in ready:
            self._has_ended = True
            return
        for broker in {id(named[fd]): named[fd] for fd in ready if fd in named}.values():
            if broker.pidfd in ready:
                self._reap(broker)
            if broker.link.fileno() in ready:
                self._serve(broker)
        if self._control.fileno() in ready:
            self._accept()

    def _accept(self) -> None:
        _, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        if not descriptors:
            self._has_ended = True
            return
        self._brokers.append(ForkedBroker(BrokerLink(socket.socket(fileno=descriptors[0]))))

    def _serve(self, broker: ForkedBroker) -> None:
        try:
            messages = broker.link.receive_nowait()
        except LinkClosed:
            self._end(broker)
            return
        for message in messages:
            if "start" in message and broker.pidfd < 0:
                self._start(broker, message["start"])
            elif "signal" in message and broker.pidfd >= 0:
                os.kill(broker.pid, message["signal"])  # it is not reaped, so the number is still its own

    def _start(self, broker: ForkedBroker, request: LinkMessage) -> None:
        try:
            if not broker.directory:
                broker.directory = tempfile.mkdtemp(prefix=PREFIX)
                broker.tell({"directory": broker.directory})
            pid = os.fork()
        except OSError as fault:
            broker.tell({"refused": f"cannot start a broker: {fault}"})
            return
        if pid == 0:
            self._become(broker, request)
        broker.pid, broker.pidfd = pid, os.pidfd_open(pid)

    def _become(self, broker: ForkedBroker, request: LinkMessage) -> None:
        """In the new process. Never returns."""
        status = 1
        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()  # its processes are a group, which ends as one
            self._control.close()
            for each in self._brokers:
                if each is not broker:
                    each.link.sock.close()
            for fd in (self._program_fd, *(each.pidfd for each in self._brokers)):
                if fd >= 0:
                    os.close(fd)
            status = become_broker(broker.link, request, broker.directory)
        except BaseException as fault:  # whatever it is, this process must not go on as the template
            broker.tell({"refused": f"{type(fault).__name__}: {fault}"})
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
            os._exit(status)

    def _reap(self, broker: ForkedBroker) -> None:
        """It has ended: so do what it had started."""
        _, how = os.waitpid(broker.pid, 0)
        end_group(broker.pid)
        os.close(broker.pidfd)
        broker.pid, broker.pidfd = 0, -1
        end_orphans({each.pid for each in self._brokers})
        broker.tell({"ended": os.waitstatus_to_exitcode(how)})

    def _end(self, broker: ForkedBroker) -> None:
        """The program has no use for it any more: it is killed if it runs, and its directory goes."""
        self._brokers.remove(broker)
        self._idle_since = time.monotonic()
        if broker.pidfd >= 0:
            os.kill(broker.pid, signal.SIGKILL)
            self._reap(broker)
        if broker.directory:
            shutil.rmtree(broker.directory, ignore_errors=True)
        broker.link.close()


def end_group(leader: int) -> None:
    """Kill what is left of a broker's processes, and wait for them: they have become children of this process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-leader, 0)


def end_orphans(brokers: set[int]) -> None:
    """Kill what processes of a broker have left in sessions of their own: whatever is our child and no broker."""
    children = f"/proc/self/task/{os.getpid()}/children"
    with contextlib.suppress(OSError):  # a kernel without that file: they end by their parents' death signal
        while orphans := {int(pid) for pid in Path(children).read_text().split()} - brokers:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def main(control_fd: int, program: int) -> None:
    """What `rumq.embedded.template` starts. control_fd: a socket to the program; program: its process id"""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    gc.freeze()  # nothing was collected: the start collects nothing either, and forks share what there is
    TemplateProcess(socket.socket(fileno=control_fd), program).run()
    os._exit(0)  # nothing is left to tidy up

"""Processes that do not outlive the test that started them, however it ends.

`subprocess.Popen(.., preexec_fn=on_leash())`: the kernel kills the process when the one that started
it is gone, by SIGKILL too, when nobody is left to clean up. It holds across exec, such as of `ip
netns exec`, and for a process that is stopped.

Failure modes: the kernel ties it to the thread that starts the process, so that other threads than
the main one, which end before the test does, put nothing on the leash.
"""
import ctypes
import os
import signal
import threading

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def on_leash(then=lambda: None):
    """What the child does before exec; `then` is called after it."""
    parent, is_main = os.getpid(), threading.current_thread() is threading.main_thread()

    def begin():
        if is_main:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # gone in between
                os._exit(1)
        then()

    return begin

#!/usr/bin/env python3
"""A file system that is really full, or becomes read-only: small ones, mounted in a mount namespace
of this test's own. Skipped where mounting is not allowed.
"""
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402

NAMESPACE = "OTTLA_TEST_NAMESPACE"


def enter_namespace():
    """Runs this script again where mounts are nobody else's affair."""
    words = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user", "--user"])
    probe = subprocess.run(words + ["true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if probe.returncode != 0:
        cases.skip_all("disk", "no mount namespace: %s" % probe.stdout.decode().strip())
    os.environ[NAMESPACE] = "1"
    os.execvp(words[0], words + [sys.executable, *sys.argv])


if __name__ == "__main__" and NAMESPACE not in os.environ and "--help" not in sys.argv:
    enter_namespace()

from account import Account, log_says  # noqa: E402
from client import STORAGE_ERROR, Client  # noqa: E402
from ottla import Broker  # noqa: E402

SMALL = {"journal.size.bytes": 33554432, "journal.file.bytes": 1048576, "num.partitions": 1,
         "checkpoint.interval.ms": 1000}


def mount(words):
    done = subprocess.run(["mount", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise cases.Skip("mount: %s" % done.stdout.decode().strip())


class Mounted:
    """A small file system: tmpfs, or ext4 in a file (direct writes are real there)."""

    def __init__(self, kind, mib, options="loop"):
        self.kind, self.mib, self.options = kind, mib, options

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="ottla-disk-")
        self.path = os.path.join(self.folder, "mounted")
        os.mkdir(self.path)
        if self.kind == "tmpfs":
            mount(["-t", "tmpfs", "-o", "size=%dm" % self.mib, "none", self.path])
        else:
            self.image = os.path.join(self.folder, "image")
            with open(self.image, "wb") as file:
                file.truncate(self.mib << 20)
            made = shutil.which("mkfs.ext4") or "/sbin/mkfs.ext4"
            if not os.path.exists(made):
                raise cases.Skip("no mkfs.ext4")
            subprocess.run([made, "-q", "-m", "0", self.image], check=True)
            mount(["-o", self.options, self.image, self.path])
        return self

    def break_file_system(self):
        device = subprocess.run(["findmnt", "-no", "SOURCE", self.path], stdout=subprocess.PIPE,
                                check=True).stdout.decode().strip()
        trigger = "/sys/fs/ext4/%s/trigger_fs_error" % os.path.basename(device)
        try:
            with open(trigger, "w") as file:
                file.write("test")
        except OSError as why:
            raise cases.Skip("cannot make a file system error: %s" % why)

    def unmount(self):
        for _ in range(50):  # the broker's last descriptors may be on their way out
            if subprocess.run(["umount", self.path], stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.1)

    def repair(self):
        self.unmount()
        done = subprocess.run([shutil.which("e2fsck") or "/sbin/e2fsck", "-fy", self.image],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode < 4, done.stdout.decode()
        mount(["-o", self.options, self.image, self.path])

    def free_mib(self):
        space = os.statvfs(self.path)
        return space.f_bavail * space.f_frsize >> 20

    def take_the_rest(self):
        """A file that takes all the space there is."""
        path = os.path.join(self.path, "rest")
        with open(path, "wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as why:
                    assert why.errno == errno.ENOSPC, why
        return path

    def __exit__(self, *_):
        self.unmount()
        shutil.rmtree(self.folder, ignore_errors=True)


def fill(kind):
    """Records fill the disk; a big file goes, and the broker comes back by itself."""
    with Mounted(kind, 250) as disk:
        ballast = os.path.join(disk.path, "ballast")
        with open(ballast, "wb") as file:
            file.write(bytes(110 << 20))
        with Broker(SMALL, data_dir=os.path.join(disk.path, "data")) as broker:
            account = Account(broker.port)
            error = account.put_until_error(limit=5000, size=100000)
            print("full with %d MiB free: error %s" % (disk.free_mib(), error))
            assert error in (STORAGE_ERROR, None), "error %d" % error
            with Client(broker.port) as client:
                assert account.put(client) == STORAGE_ERROR
            log_says(broker, "ERROR", "Free some space")
            assert broker.alive()
            os.unlink(ballast)
            account.wait_until_it_accepts()
            account.check()
            broker.kill9()
            broker.start()
            account.check()


def test_full_tmpfs():
    fill("tmpfs")


def test_full_ext4():
    fill("ext4")


def test_start_on_a_full_disk():
    """A broker that was killed on a full disk starts, and goes on when there is space."""
    with Mounted("ext4", 300) as disk:
        ballast = os.path.join(disk.path, "ballast")
        with open(ballast, "wb") as file:
            file.write(bytes(120 << 20))
        broker = Broker(SMALL, data_dir=os.path.join(disk.path, "data"))
        try:
            broker.start()
            account = Account(broker.port)
            account.put_until_error(limit=5000, size=100000)
            broker.kill9()
            rest = disk.take_the_rest()
            broker.start()
            error = account.put_until_error(limit=5000, size=100000)
            assert error in (STORAGE_ERROR, None), error
            log_says(broker, "ERROR", "Free some space")
            os.unlink(rest)
            os.unlink(ballast)
            account.wait_until_it_accepts()
            account.check()
            broker.stop()
        except BaseException:
            print(broker.log_tail())
            raise
        finally:
            broker.close()


def test_first_start_on_a_full_disk():
    """Nothing can be made there: the process ends, and says what to do."""
    with Mounted("ext4", 100) as disk:
        rest = disk.take_the_rest()
        broker = Broker(SMALL, data_dir=os.path.join(disk.path, "data"))
        try:
            broker.spawn()
            assert broker.process.wait(20) == 1
            broker.process = None
            log_says(broker, "ERROR", "cannot begin in", "Free some space",
                     "start it again")
            os.unlink(rest)
            broker.start()
            broker.stop()
        finally:
            broker.close()


def test_file_system_error_makes_it_read_only():
    """ext4 finds an error (it is told to) and goes read-only, as with errors=remount-ro."""
    with Mounted("ext4", 300, "loop,errors=remount-ro") as disk:
        with Broker(SMALL, data_dir=os.path.join(disk.path, "data")) as broker:
            account = Account(broker.port)
            account.put_many(200)
            disk.break_file_system()
            error = account.put_until_error()
            assert error in (STORAGE_ERROR, None), error
            log_says(broker, "ERROR", "cannot be written")
            broker.kill9()
            disk.repair()
            broker.start()
            account.wait_until_it_accepts()
            account.check()


OPTIONS = None
if __name__ == "__main__":
    cases.main("disk", globals())

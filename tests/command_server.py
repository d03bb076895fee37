"""The command line as processes that do not wait for imports.

A command spends two seconds on importing scikit-learn, pandas and numba, and a page of the documentation runs thirty.
``commands()`` gives a folder for the ``PATH`` whose ``kernelweave`` asks a server to run the command. The server has
imported those packages, not ``kernelweave`` itself, and forks a process for every command, with the arguments, folder,
environment and open files of the one that asked. So a command starts from nothing of this library, as in a new Python.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import warnings
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

IMPORTED_FIRST = (
    *("numba", "pandas", "rich.progress", "tqdm", "typer._adapters"),
    *("scipy.cluster.hierarchy", "scipy.optimize", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.stats"),
    *("sklearn.cluster", "sklearn.decomposition", "sklearn.gaussian_process", "sklearn.impute", "sklearn.metrics"),
    *("sklearn.kernel_approximation", "sklearn.multiclass", "sklearn.neighbors", "sklearn.pipeline"),
)
LONGEST_REQUEST = 1 << 20

# What ``kernelweave`` is on the path: -I and -S keep its own start short.
ASK = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [request], [0, 1, 2])
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(8) or 70))
"""


@contextmanager
def commands():
    """Give a folder with a ``kernelweave`` that a server runs; the server ends with the block."""
    if sys.platform != "linux":  # elsewhere a fork may not be safe: the installed program
        yield Path(sys.executable).parent
        return
    with TemporaryDirectory() as folder:
        address = f"{folder}/server"
        program = Path(folder, "kernelweave")
        program.write_text(ASK.format(python=sys.executable, address=address), encoding="utf-8")
        program.chmod(0o755)
        # -P: the folder of this file is no place to import from
        command = [sys.executable, "-P", __file__, address]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout.readline() == b"ready\n"
                yield Path(folder)
            finally:
                server.terminate()


def serve(address):
    for name in IMPORTED_FIRST:
        with suppress(ImportError):  # an extra, or a name of another version
            import_module(name)
    assert not any(name.partition(".")[0] == "kernelweave" for name in sys.modules)
    gc.freeze()  # a command that collects its own garbage need not copy these pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            with door.accept()[0] as asked:
                if not forked():
                    door.close()
                    return answer(asked)


def answer(asked):
    """Run one command in a process of its own and tell who asked for it how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, files, _, _ = socket.recv_fds(asked, LONGEST_REQUEST, 3)
    while more := asked.recv(LONGEST_REQUEST):
        request += more
    process = forked()
    if not process:
        asked.close()
        return run(*json.loads(request), files)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    asked.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def run(arguments, folder, environment, files):
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = ["kernelweave", *arguments]
    from kernelweave.cli import main

    return main()


def forked():
    with warnings.catch_warnings():
        # Python 3.12 warns where a library holds threads; the libraries above mend theirs after a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1]))

"""New processes that do not wait for imports.

A command spends two seconds on importing scikit-learn, pandas and numba, and tests start some forty. ``programs()``
gives a folder with two programs, ``kernelweave`` and ``python`` (which takes ``-c code`` only), that ask a server to
run the process. The server has imported those packages, and nothing of this library or of matplotlib. It forks a
process for each request, with the arguments, folder, environment and open files of the program that asks: the process
finds what it finds in a new Python, and imports this library itself. How Python starts is tested elsewhere.
"""

import atexit
import gc
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp

ROOT = Path(__file__).parents[1]
IMPORTED_FIRST = (
    *("numba", "pandas", "pydantic", "rich.progress", "tqdm", "typer", "typer._adapters"),
    *("scipy.cluster.hierarchy", "scipy.optimize", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.stats"),
    *("sklearn.cluster", "sklearn.decomposition", "sklearn.gaussian_process", "sklearn.impute", "sklearn.metrics"),
    *("sklearn.kernel_approximation", "sklearn.multiclass", "sklearn.neighbors", "sklearn.pipeline"),
)
NOT_IMPORTED = {"kernelweave", "matplotlib", "reproduction"}
LONGEST_MESSAGE = 1 << 20

# The programs: -I and -S keep their own start short.
ASK = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    sent = socket.send_fds(server, [request], [0, 1, 2])
    server.sendall(request[sent:])
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(8) or 70))
"""


@cache
def programs():
    """Start the server and return the folder of the programs; both are gone when this process ends."""
    if sys.platform != "linux":  # elsewhere a fork may not be safe: the installed programs
        return Path(sys.executable).parent
    # -P: the folder of this file is not a place to import from
    command = [sys.executable, "-P", __file__]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    folder = server.stdout.readline().strip()
    assert folder, "the server of commands did not start"
    atexit.register(server.communicate)
    return Path(folder)


def serve():
    for name in IMPORTED_FIRST:
        with suppress(ImportError):  # an extra, or a name of another version
            import_module(name)
    ready_compiler()
    assert not NOT_IMPORTED & {name.partition(".")[0] for name in sys.modules}
    gc.freeze()  # a process that collects its own garbage need not copy these pages
    folder = Path(mkdtemp())
    with socket.socket(socket.AF_UNIX) as door:
        address = str(folder / "server")
        door.bind(address)
        door.listen()
        for name in ("kernelweave", "python"):
            (folder / name).write_text(ASK.format(python=sys.executable, address=address), encoding="utf-8")
            (folder / name).chmod(0o755)
        sys.stdout.write(f"{folder}\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([door, sys.stdin], [], [])[0]:  # it closes when the tests end
            asked, _ = door.accept()
            with asked:
                if not forked():
                    answer(asked)
            with suppress(ChildProcessError):  # what has ended, so that its time is counted
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    shutil.rmtree(folder)


def ready_compiler():
    """Compile a function that does nothing: what numba does before its first takes as long as a short fit."""
    import numba

    numba.njit("void()")(lambda: None)


def answer(asked):
    """Run a process and tell who asked for it how it ended."""
    request, files, _, _ = socket.recv_fds(asked, LONGEST_MESSAGE, 3)
    while more := asked.recv(LONGEST_MESSAGE):
        request += more
    process = forked()
    if not process:
        run(*json.loads(request), files)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    asked.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def run(program, arguments, folder, environment, files):
    """Be the process that was asked for, to its end."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    signs = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdout = open(1, "w", encoding=signs, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=signs, errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = [program, *arguments]
    if program == "python":
        _, code = arguments
        exec(code, {"__name__": "__main__"})
        sys.exit()
    from kernelweave.cli import main

    sys.exit(main())


def forked():
    """Return 0 in the new process, and its number in the old one."""
    with warnings.catch_warnings():
        # Python 3.12 warns where a library holds threads; the libraries above mend theirs after a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


if __name__ == "__main__":
    serve()

"""A server on this machine that gives files well or badly, and small sets to be fetched from it."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from kernelweave.datasets.conversion import Target, Wanted, read_table
from kernelweave.datasets.digests import array_digest, content_digest
from kernelweave.datasets.download import File
from kernelweave.datasets.sources import DataSet, Source

TABLE = b"0.5,1.0,a\n2.0,?,b\n4.0,5.0,a\n"
ARRAYS = {"X": np.array([[0.5, 1.0], [2.0, np.nan], [4.0, 5.0]]), "y": np.array([0, 1, 0])}
FACTS = {"classes": ["a", "b"]}
HOST = "data.example"


def target(arrays, facts):
    wanted = {name: Wanted(array.shape, array_digest(array)) for name, array in arrays.items()}
    stored = {name: np.array(fact) for name, fact in facts.items()}
    return Target(facts, wanted, content_digest({**arrays, **stored}))


def toy(*sources, name="toy"):
    return DataSet(name, f"{name}/{name}", "A toy", sources, target(ARRAYS, FACTS))


def at(path, member=None, most=1000, read=read_table):
    return Source("a server", (File(f"https://{HOST}{path}", member, most),), read)


class FileServer:
    """Answers by path: content, or a function that is called with the handler. Keeps the paths that were asked."""

    def __init__(self):
        self.answers = {}
        self.asked = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def put(self, path, answer):
        self.answers[f"/{HOST}{path}"] = answer

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _handler(self):
        files = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                files.asked.append(self.path)
                answer = files.answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                elif callable(answer):
                    answer(self)
                else:
                    send(self, answer)

            def log_message(self, *_):
                pass

        return Handler


def send(handler, content, announced=None):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if announced is None else announced))
    handler.end_headers()
    handler.wfile.write(content)


def truncated(handler):
    send(handler, TABLE[:10], announced=len(TABLE))


def never(handler):
    time.sleep(1.0)


def redirect(address):
    def answer(handler):
        handler.send_response(302)
        handler.send_header("Location", address)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def in_turn(*answers):
    """Answer one after the other, and the last one again and again."""
    left = list(answers)

    def answer(handler):
        now = left.pop(0) if len(left) > 1 else left[0]
        now(handler) if callable(now) else send(handler, now)

    return answer

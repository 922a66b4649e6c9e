"""A hub of one repository on this machine, for downloads without a network."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHA = "0123456789" * 4


@contextmanager
def serve(repo: str, files: dict[str, bytes]):
    """Serve the files of one repository; yields its address and the list of paths asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, body: bool):
            path = self.path.split("?")[0]
            asked.append(path)
            api, resolve = f"/api/models/{repo}", f"/{repo}/resolve/"
            if path in (api, f"{api}/revision/main", f"{api}/revision/{SHA}"):
                siblings = [{"rfilename": name} for name in files]
                self.send(json.dumps({"id": repo, "sha": SHA, "siblings": siblings}).encode(), body)
            elif path.startswith(f"{api}/tree/"):
                tree = [
                    {"type": "file", "path": n, "size": len(data), "oid": etag(data)}
                    for n, data in files.items()
                ]
                self.send(json.dumps(tree).encode(), body)
            elif path.startswith(resolve) and path.split("/", 5)[-1] in files:
                self.send(files[path.split("/", 5)[-1]], body)
            else:
                self.send_response(404)
                self.send_header(
                    "X-Error-Code", "RepoNotFound" if repo not in path else "EntryNotFound"
                )
                self.send_header("Content-Length", "0")
                self.end_headers()

        def send(self, data: bytes, body: bool):
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", f'"{etag(data)}"')
            self.send_header("X-Repo-Commit", SHA)
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def etag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()

"""A mail server on this machine that takes what programs send, and answers as a test says."""

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread


class MailEndpoint(ThreadingTCPServer):
    """`came` are the mails. `answers` are the next answers to DATA, then 250 forever.

    `refused` are addresses with their next answers. `recipients` are the others, once a mail.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.place = f"127.0.0.1:{self.server_address[1]}"
        self.came: list[EmailMessage] = []
        self.answers: list[int] = []
        self.refused: dict[str, list[int]] = {}
        self.recipients: list[str] = []


class _Handler(StreamRequestHandler):
    server: MailEndpoint

    def say(self, answer: str) -> None:
        self.wfile.write(f"{answer}\r\n".encode())

    def handle(self) -> None:
        self.say("220 here")
        while line := self.rfile.readline():
            match line.split()[0].upper():
                case b"QUIT":
                    return self.say("221 bye")
                case b"RCPT":
                    address = line.split(b"<")[1].split(b">")[0].decode()
                    if refusals := self.server.refused.get(address):
                        self.say(f"{refusals.pop(0)} no")
                    else:
                        self.server.recipients.append(address)
                        self.say("250 ok")
                case b"DATA":
                    self.say("354 go on")
                    self.take()
                case _:
                    self.say("250 ok")
        return None

    def take(self) -> None:
        lines = list(iter(self.rfile.readline, b".\r\n"))
        answer = self.server.answers.pop(0) if self.server.answers else 250
        if answer == 250:
            content = b"".join(line.removeprefix(b".") for line in lines)
            mail = message_from_bytes(content, _class=EmailMessage, policy=policy.default)
            assert isinstance(mail, EmailMessage)
            self.server.came.append(mail)
        self.say(f"{answer} it")


@contextmanager
def mail_server() -> Iterator[MailEndpoint]:
    """A mail server, until the block ends."""
    with MailEndpoint() as endpoint:
        thread = Thread(target=endpoint.serve_forever, args=(0.01,))
        thread.start()
        yield endpoint
        endpoint.shutdown()
        thread.join()
